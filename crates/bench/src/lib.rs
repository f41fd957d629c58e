//! Load, and the comparison of poolers under it
