//! Names of statements, settled and undone.
