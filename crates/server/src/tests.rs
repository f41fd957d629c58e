//! Ledgers as scripts: what is sent and what comes back, against what is still owed.

mod ledger;
mod listening;
mod prepared;
