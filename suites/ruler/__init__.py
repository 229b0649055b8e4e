"""RULER (Hsieh et al. 2024, arXiv:2404.06654): tasks after the published generators."""
