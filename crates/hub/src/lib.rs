//! What clients share: databases, users, pools, limits, cancel keys
