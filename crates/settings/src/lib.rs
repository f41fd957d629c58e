//! The settings: one table of keys, and the pgbouncer.ini that sets them
