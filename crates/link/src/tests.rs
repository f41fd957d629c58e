//! Scripts of both sides against what each is sent.
