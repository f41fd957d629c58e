//! The admin console: commands in, tables out
