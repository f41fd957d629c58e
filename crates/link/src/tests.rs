//! Scripts of both sides against what each is sent; random ones against a model of PostgreSQL.

mod by_sql;
mod channels;
mod copies;
mod databases;
mod ends;
mod forgetful;
mod garbage;
mod harness;
mod outlive;
mod parameters;
mod pipelines;
mod postgres;
mod prepared;
mod random;
mod random_prepare;
mod random_state;
mod route;
mod script;
mod segments;
mod sequences;
mod session;
mod stale;
mod state;
mod unnamed;
mod words;
