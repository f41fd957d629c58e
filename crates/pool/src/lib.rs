//! Which client gets which server, and when servers open and close
