//! What is checked while a kernel runs: who wrote each byte, what happened before what, findings.
