"""The figures, one module per question."""
