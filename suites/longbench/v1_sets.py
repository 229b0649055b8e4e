"""The sets of LongBench v1: how each is asked, how long its answers may be, how they are scored.

Figures: the benchmark's README and config (THUDM/LongBench at 2e00731). Wording: ours; `prompts` takes the published file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Metric = Literal["f1", "f1_zh", "rouge", "rouge_zh", "classes", "number", "code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """One set."""

    category: str
    metric: Metric
    reserve: int
    """Most new tokens, as published."""
    prompt: str
    """With {context} and {input}."""
    one_line: bool = False
    """Only the first line of the answer counts."""


_BRIEF = "Answer as briefly as you can, with a name or a phrase from the text where that will do, and explain nothing."
_KURZ_ZH = "请尽量简短地回答，不要解释。"
_DOCS = (
    f"Answer the question from the passages below. {_BRIEF}\n\n{{context}}\n\n{_BRIEF}\n\nQuestion: {{input}}\nAnswer:"
)

SETS: Mapping[str, Set] = {
    "narrativeqa": Set(
        category="single-doc",
        metric="f1",
        reserve=128,
        prompt=f"Below is a story (a book or a script) and a question about it. {_BRIEF}\n\n{{context}}\n\n{_BRIEF}\n\n"
        "Question: {input}\nAnswer:",
    ),
    "qasper": Set(
        category="single-doc",
        metric="f1",
        reserve=128,
        prompt=f"Below is a scientific article and a question about it. {_BRIEF} If it cannot be answered from the article, write "
        '"unanswerable"; to a yes-or-no question write "yes", "no" or "unanswerable".\n\n{context}\n\nQuestion: {input}\nAnswer:',
    ),
    "multifieldqa_en": Set(
        category="single-doc",
        metric="f1",
        reserve=64,
        prompt=f"Read the text and answer the question. {_BRIEF}\n\n{{context}}\n\nQuestion: {{input}}\nAnswer:",
    ),
    "multifieldqa_zh": Set(
        category="single-doc",
        metric="f1_zh",
        reserve=64,
        prompt=f"请阅读下文并回答问题。{_KURZ_ZH}\n\n{{context}}\n\n问题：{{input}}\n回答：",
    ),
    "hotpotqa": Set(category="multi-doc", metric="f1", reserve=32, prompt=_DOCS),
    "2wikimqa": Set(category="multi-doc", metric="f1", reserve=32, prompt=_DOCS),
    "musique": Set(category="multi-doc", metric="f1", reserve=32, prompt=_DOCS),
    "dureader": Set(
        category="multi-doc",
        metric="rouge_zh",
        reserve=128,
        prompt="请根据以下文章回答问题。\n\n{context}\n\n问题：{input}\n回答：",
    ),
    "gov_report": Set(
        category="summarization",
        metric="rouge",
        reserve=512,
        prompt="Write a summary of about one page of this government report.\n\nReport:\n{context}\n\nSummary:",
    ),
    "qmsum": Set(
        category="summarization",
        metric="rouge",
        reserve=512,
        prompt="Below is the transcript of a meeting and a query about it. Answer the query in one or a few sentences.\n\n"
        "Transcript:\n{context}\n\nQuery: {input}\nAnswer:",
    ),
    "multi_news": Set(
        category="summarization",
        metric="rouge",
        reserve=512,
        prompt="Write a summary of about one page of all these news articles.\n\nNews:\n{context}\n\nSummary:",
    ),
    "vcsum": Set(
        category="summarization",
        metric="rouge_zh",
        reserve=512,
        prompt="请为下面的会议记录写一段总结。\n\n会议记录：\n{context}\n\n总结：",
    ),
    "trec": Set(
        category="few-shot",
        metric="classes",
        reserve=64,
        one_line=True,
        prompt="Name the type of the last question, as in the examples.\n\n{context}\n{input}",
    ),
    "triviaqa": Set(
        category="few-shot",
        metric="f1",
        reserve=32,
        one_line=True,
        prompt="Answer the last question from its passage, as briefly as in the examples.\n\n{context}\n\n{input}",
    ),
    "samsum": Set(
        category="few-shot",
        metric="rouge",
        reserve=128,
        one_line=True,
        prompt="Summarize the last dialogue in a few short sentences, as in the examples.\n\n{context}\n\n{input}",
    ),
    "lsht": Set(
        category="few-shot",
        metric="classes",
        reserve=64,
        one_line=True,
        prompt="请参照例子，写出最后一条新闻的类别。\n\n{context}\n{input}",
    ),
    "passage_count": Set(
        category="synthetic",
        metric="number",
        reserve=32,
        prompt="Some of these paragraphs are repeated. How many different paragraphs are there? Answer with the number alone.\n\n"
        "{context}\n\nNumber of different paragraphs:",
    ),
    "passage_retrieval_en": Set(
        category="synthetic",
        metric="number",
        reserve=32,
        prompt="Which of these paragraphs does the abstract after them summarize?\n\n{context}\n\nAbstract:\n{input}\n\n"
        'Answer with the number of the paragraph, such as "Paragraph 1".\n\nAnswer:',
    ),
    "passage_retrieval_zh": Set(
        category="synthetic",
        metric="number",
        reserve=32,
        prompt="下面的摘要出自哪一个段落？\n\n{context}\n\n摘要：\n{input}\n\n请回答段落的编号，例如“段落1”。\n\n回答：",
    ),
    "lcc": Set(
        category="code", metric="code", reserve=64, prompt="Write the next line of this code.\n{context}Next line:\n"
    ),
    "repobench-p": Set(
        category="code",
        metric="code",
        reserve=64,
        prompt="Write the next line of this code.\n{context}{input}Next line:\n",
    ),
}
E_SETS = (
    *("2wikimqa", "hotpotqa", "multifieldqa_en", "qasper", "gov_report", "multi_news", "trec", "triviaqa", "samsum"),
    *("passage_count", "passage_retrieval_en", "lcc", "repobench-p"),
)
"""Sets of LongBench-E: the same tasks on rows that are spread evenly over three buckets of length."""
BUCKETS = ((4000, "0-4k words"), (8000, "4k-8k words"))
"""Words below which a row belongs to a bucket of LongBench-E."""
LONGEST_BUCKET = "8k+ words"
