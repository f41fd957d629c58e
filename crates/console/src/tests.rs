//! The console by subject: what is understood, who may say it, what is shown, and how it is spoken.

mod bytes;
mod client;
mod grammar;
mod pipeline;
mod roles;
mod simple;
mod tables;
