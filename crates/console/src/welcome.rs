//! The console as a database: its names and its session's parameters.

/// The databases that are the console.
pub const DATABASES: [&str; 2] = ["pgbouncer", "howdah"];

/// Whether a database's name means the console.
pub fn is_console(database: &str) -> bool {
    DATABASES.contains(&database)
}

/// The parameters of the console's welcome; `version` is `X.Y.Z`.
pub fn welcome(version: &str) -> Vec<(&'static str, String)> {
    let fixed = [
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("TimeZone", "GMT"),
        ("standard_conforming_strings", "on"),
        ("is_superuser", "on"),
    ];
    let mut parameters = vec![("server_version", format!("{version}/bouncer"))];
    parameters.extend(fixed.map(|(name, value)| (name, value.to_owned())));
    parameters
}
