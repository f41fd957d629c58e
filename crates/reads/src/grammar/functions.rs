//! Functions that are known by their names, whatever their mark says: those of which it says too little.
//!
//! `txid_current` is marked stable and takes a number that only a primary has; much else of the system's own is stable
//! and tells of the server that it runs on.

use super::Origin;
use crate::verdict::Why;

/// Why a call of this function goes to the primary, if its name says so.
pub(super) fn known(name: &str, origin: Origin) -> Option<Why> {
    if SEQUENCE.contains(&name) {
        Some(Why::Sequence)
    } else if name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_") {
        Some(Why::AdvisoryLock)
    } else if name == "set_config" {
        Some(Why::Session)
    } else if name == "current_setting" && origin == Origin::Catalog {
        // In policies and views it asks for what the client has set, which goes with the client.
        None
    } else if is_of_system(name) {
        Some(Why::System)
    } else {
        None
    }
}

const SEQUENCE: [&str; 4] = ["nextval", "currval", "setval", "lastval"];

/// `pg_` is the system's own prefix; these few depend on nothing but what they are given, and on the catalog.
const HARMLESS: [&str; 18] = [
    "pg_typeof",
    "pg_column_size",
    "pg_column_compression",
    "pg_size_pretty",
    "pg_size_bytes",
    "pg_collation_for",
    "pg_client_encoding",
    "pg_encoding_to_char",
    "pg_char_to_encoding",
    "pg_input_is_valid",
    "pg_get_expr",
    "pg_get_viewdef",
    "pg_get_constraintdef",
    "pg_get_indexdef",
    "pg_get_functiondef",
    "pg_get_userbyid",
    "pg_table_is_visible",
    "pg_type_is_visible",
];

/// Of the server, the session, the transaction, or of a table that a literal names.
const OF_SYSTEM: [&str; 6] = [
    "current_setting",
    "inet_server_addr",
    "inet_server_port",
    "inet_client_addr",
    "inet_client_port",
    "row_security_active",
];

fn is_of_system(name: &str) -> bool {
    name.starts_with("pg_") && !HARMLESS.contains(&name)
        || name.starts_with("txid_")
        || name.starts_with("binary_upgrade_")
        || name.starts_with("lo_")
        || name.contains("_to_xml")
        || OF_SYSTEM.contains(&name)
}
