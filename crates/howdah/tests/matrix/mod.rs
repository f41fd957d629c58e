//! The state matrix: kinds of session state, what happens to them, and by which protocol.
//!
//! What is right is never written down here: the same script is played to PostgreSQL itself, and the pooler's
//! client must hear the same, while others use its servers in between and see nothing of it.

pub mod cell;
pub mod kind;
pub mod kinds;
pub mod not_yet;
pub mod player;
pub mod report;
pub mod sides;
pub mod stage;
