//! Precedence of user, database and general settings.

use std::time::Duration;

use model::{PoolMode, StateMode};

use super::good;
use crate::Settings;

/// Settings whose database `d` and user `u` have these keys, with general ones that differ from the defaults.
fn of(database: &str, user: &str) -> Settings {
    good(&format!(
        "[pgbouncer]\ndefault_pool_size = 9\nreserve_pool_size = 8\nmin_pool_size = 7\n\
         max_db_connections = 60\nmax_user_connections = 50\nquery_wait_timeout = 40\nquery_timeout = 30\n\
         server_lifetime = 20\nauth_user = general\n[databases]\nd = {database}\n[users]\nu = {user}\n"
    ))
}

macro_rules! holds {
    ($database:literal, $user:literal, $method:ident, $wanted:expr) => {
        let settings = of($database, $user);
        assert_eq!(settings.effective(&settings.databases["d"], "u").$method(), $wanted);
    };
}

#[test]
fn user_goes_before_database_before_general() {
    holds!("", "", pool_mode, PoolMode::Session);
    holds!("pool_mode=statement", "", pool_mode, PoolMode::Statement);
    holds!("pool_mode=statement", "pool_mode=transaction", pool_mode, PoolMode::Transaction);
    holds!("", "", pool_size, Some(9));
    holds!("pool_size=3", "", pool_size, Some(3));
    holds!("pool_size=3", "pool_size=4", pool_size, Some(4));
    holds!("pool_size=3", "pool_size=-1", pool_size, Some(3));
    holds!("", "", reserve_pool_size, 8);
    holds!("reserve_pool_size=1", "reserve_pool_size=0", reserve_pool_size, 0);
}

#[test]
fn pool_size_zero_is_no_limit() {
    holds!("pool_size=0", "", pool_size, None);
    holds!("pool_size=3", "pool_size=0", pool_size, None);
}

#[test]
fn minimum_is_capped_by_the_pool_size() {
    holds!("", "", min_pool_size, 7);
    holds!("min_pool_size=5", "", min_pool_size, 5);
    holds!("pool_size=3", "", min_pool_size, 3);
    holds!("pool_size=0 min_pool_size=100", "", min_pool_size, 100);
}

#[test]
fn connection_limits_of_zero_fall_back() {
    holds!("max_db_connections=0", "", max_db_connections, Some(60));
    holds!("max_db_connections=-1", "", max_db_connections, Some(60));
    holds!("max_db_connections=2", "", max_db_connections, Some(2));
    holds!("", "max_user_connections=0", max_user_connections, Some(50));
    holds!("", "max_user_connections=3", max_user_connections, Some(3));
    holds!("", "", max_db_client_connections, None);
    holds!("", "max_user_client_connections=1", max_user_client_connections, Some(1));
}

#[test]
fn wait_timeout_of_zero_is_off_where_it_stands() {
    holds!("", "", query_wait_timeout, Duration::from_secs(40));
    holds!("query_wait_timeout=5", "", query_wait_timeout, Duration::from_secs(5));
    holds!("query_wait_timeout=5", "query_wait_timeout=0", query_wait_timeout, Duration::ZERO);
    holds!("query_wait_timeout=0", "", query_wait_timeout, Duration::ZERO);
}

#[test]
fn user_cannot_switch_other_timeouts_off() {
    holds!("", "query_timeout=0", query_timeout, Duration::from_secs(30));
    holds!("", "query_timeout=3", query_timeout, Duration::from_secs(3));
    holds!("", "transaction_timeout=3", transaction_timeout, Duration::from_secs(3));
    holds!("", "idle_transaction_timeout=3", idle_transaction_timeout, Duration::from_secs(3));
    holds!("", "client_idle_timeout=3", client_idle_timeout, Duration::from_secs(3));
    holds!("server_lifetime=0", "", server_lifetime, Duration::from_secs(20));
    holds!("server_lifetime=2", "", server_lifetime, Duration::from_secs(2));
}

#[test]
fn database_goes_before_general_for_the_look_up_of_users() {
    holds!("", "", auth_user, Some("general"));
    holds!("auth_user=own", "", auth_user, Some("own"));
    holds!("auth_query='SELECT 1, 2'", "", auth_query, "SELECT 1, 2");
    holds!("auth_dbname=x", "", auth_dbname, Some("x"));
}

#[test]
fn forced_user_and_dbname_replace_what_the_client_asked_for() {
    let settings = of("user=forced dbname=real", "");
    let effective = settings.effective(&settings.databases["d"], "u");
    assert_eq!((effective.server_user("u"), effective.server_dbname("d")), ("forced", "real"));
    let settings = of("", "");
    let effective = settings.effective(&settings.databases["d"], "u");
    assert_eq!((effective.server_user("u"), effective.server_dbname("d")), ("u", "d"));
}

#[test]
fn session_state_of_the_user_goes_before_the_databases() {
    holds!("", "", session_state, StateMode::Carry);
    holds!("session_state=off", "", session_state, StateMode::Off);
    holds!("session_state=off", "session_state=refuse", session_state, StateMode::Refuse);
}

#[test]
fn most_pinned_is_a_number_or_a_part_of_the_pool_but_never_nothing() {
    holds!("", "", max_pinned, Some(4));
    holds!("pool_size=20", "", max_pinned, Some(10));
    holds!("pool_size=1", "", max_pinned, Some(1));
    holds!("pool_size=0", "", max_pinned, None);
    holds!("pool_size=0 max_pinned=3", "", max_pinned, Some(3));
    holds!("pool_size=10 max_pinned=0", "", max_pinned, None);
    holds!("pool_size=10 max_pinned=25%", "", max_pinned, Some(2));
    holds!("pool_size=10 max_pinned=25%", "max_pinned=100%", max_pinned, Some(10));
}
