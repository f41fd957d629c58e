//! The SQLSTATE codes that Howdah itself sends or acts upon (PostgreSQL manual, appendix A).
#![allow(missing_docs)]

pub const SUCCESSFUL_COMPLETION: &str = "00000";
pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
pub const CONNECTION_FAILURE: &str = "08006";
pub const TRANSACTION_RESOLUTION_UNKNOWN: &str = "08007";
pub const PROTOCOL_VIOLATION: &str = "08P01";
pub const INVALID_AUTHORIZATION: &str = "28000";
pub const INVALID_PASSWORD: &str = "28P01";
pub const INVALID_SQL_STATEMENT_NAME: &str = "26000";
pub const INVALID_CATALOG_NAME: &str = "3D000";
pub const DUPLICATE_PREPARED_STATEMENT: &str = "42P05";
pub const UNDEFINED_OBJECT: &str = "42704";
pub const TOO_MANY_CONNECTIONS: &str = "53300";
pub const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
pub const STATEMENT_TOO_COMPLEX: &str = "54001";
pub const QUERY_CANCELED: &str = "57014";
pub const ADMIN_SHUTDOWN: &str = "57P01";
pub const CRASH_SHUTDOWN: &str = "57P02";
pub const CANNOT_CONNECT_NOW: &str = "57P03";
pub const IDLE_SESSION_TIMEOUT: &str = "57P05";
pub const IDLE_IN_TRANSACTION_TIMEOUT: &str = "25P03";
pub const TRANSACTION_TIMEOUT: &str = "25P04";
pub const CONFIG_FILE_ERROR: &str = "F0000";
