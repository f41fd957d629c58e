//! One client: its login, what it sends, what it relies on
