//! One client paired with at most one server
