//! Against PostgreSQL 15 with TLS, over TCP and the Unix socket.

use std::sync::OnceLock;

use server::login::Method;
use testkit::{Postgres, PostgresOptions, Version as Release};

use super::*;
use crate::cancel_out::{CancelOrder, CancelSender};

const HBA: &str = "\
local all trusted trust
local all postgres trust
host all clear all password
host all hashed all md5
host all scrammed all scram-sha-256
host all trusted all trust
hostnossl all plain all scram-sha-256
";

fn postgres() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = PostgresOptions::new(Release::V15).tls().hba(HBA).start();
        for role in ["clear", "scrammed", "plain"] {
            server.create_role(role, "secret");
        }
        server.sql("create role trusted login superuser");
        server.sql("set password_encryption = md5; create role hashed login password 'secret'");
        server
    })
}

fn as_role(role: &str, tls: ServerTls) -> ConnectOrder {
    let server = postgres();
    ConnectOrder { host: Host::Name("localhost".into()), user: role.into(), tls, ..order(server.port()) }
}

#[track_caller]
fn verifying() -> ServerTls {
    tls(SslMode::VerifyFull, Some(postgres().certificates().unwrap().authority()))
}

async fn method(role: &str, tls: ServerTls) -> Option<Method> {
    connect(&as_role(role, tls), &context()).await.unwrap().login.method
}

#[tokio::test]
async fn every_method_logs_in() {
    assert_eq!(method("clear", ServerTls::DISABLED).await, Some(Method::Cleartext));
    assert_eq!(method("hashed", ServerTls::DISABLED).await, Some(Method::Md5));
    assert_eq!(method("scrammed", ServerTls::DISABLED).await, Some(Method::Scram));
    assert_eq!(method("plain", ServerTls::DISABLED).await, Some(Method::Scram));
    assert_eq!(method("trusted", ServerTls::DISABLED).await, Some(Method::Trust));
    assert_eq!(method("clear", verifying()).await, Some(Method::Cleartext));
    assert_eq!(method("hashed", verifying()).await, Some(Method::Md5));
    assert_eq!(method("scrammed", verifying()).await, Some(Method::ScramPlus));
    assert_eq!(method("scrammed", tls(SslMode::Prefer, None)).await, Some(Method::ScramPlus));
}

#[tokio::test]
async fn login_tells_about_the_server() {
    let mut order = as_role("scrammed", verifying());
    order.version = Version::V3_2;
    order.parameters.push((b"application_name".as_slice().into(), b"test of connect".as_slice().into()));
    order.connect_query = Some(b"set timezone = 'Europe/Berlin'".as_slice().into());
    let connected = connect(&order, &context()).await.unwrap();
    let value = |name: &[u8]| {
        let pair = connected.login.parameters.iter().find(|(known, _)| **known == *name);
        pair.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).unwrap()
    };
    assert_eq!(value(b"application_name"), "test of connect");
    assert_eq!(value(b"TimeZone"), "Europe/Berlin");
    assert!(value(b"server_version").starts_with("15."));
    assert_eq!((connected.login.minor, connected.login.cancel_key.len()), (0, 4));
    assert!(connected.tls_description.unwrap().starts_with("TLSv1.3/TLS_"));
    assert!(connected.tls.is_some());
}

#[tokio::test]
async fn unix_socket_has_no_tls() {
    let mut order = as_role("trusted", verifying());
    order.host = Host::Unix(postgres().socket_dir().to_str().unwrap().into());
    let connected = connect(&order, &context()).await.unwrap();
    assert!(connected.tls.is_none());
    assert_eq!(connected.remote.address(), "unix");
}

#[tokio::test]
async fn wrong_password_is_the_servers_refusal() {
    let secret = LoginSecret::Clear(Password::new(b"wrong".as_slice()));
    for role in ["clear", "hashed", "scrammed"] {
        let order = ConnectOrder { secret: secret.clone(), ..as_role(role, verifying()) };
        let error = connect(&order, &context()).await.unwrap_err();
        assert_eq!(error.refusal().and_then(|failed| failed.sqlstate.as_deref()), Some("28P01"), "{error}");
    }
}

#[tokio::test]
async fn replication_connection_is_logged_in() {
    let mut order = as_role("trusted", ServerTls::DISABLED);
    order.replication = Some(Replication::Logical);
    order.connect_query = Some(b"select 1".as_slice().into());
    connect(&order, &context()).await.unwrap();
}

const QUERY: &str =
    "select rolname, rolpassword from pg_catalog.pg_authid where rolname = $1 and rolcanlogin";

#[tokio::test]
async fn auth_query_finds_users_over_one_connection() {
    let server = postgres();
    server.sql("create database lookups");
    let mut order = as_role("trusted", verifying());
    order.database = "lookups".into();
    let lookups = Lookups::new(context());
    let found = lookups.find(&order, QUERY, "scrammed", LIMIT).await.unwrap().unwrap();
    assert_eq!(&*found.user, b"scrammed");
    assert!(found.secret.unwrap().reveal().starts_with(b"SCRAM-SHA-256$"));
    let found = lookups.find(&order, QUERY, "trusted", LIMIT).await.unwrap().unwrap();
    assert_eq!(found.secret, None);
    for nobody in ["nobody", "", "x'; drop database lookups; --"] {
        assert_eq!(lookups.find(&order, QUERY, nobody, LIMIT).await.unwrap(), None);
    }
    assert_eq!(server.sessions_in("lookups"), 1);
    // A connection that was lost meanwhile is replaced without anybody noticing.
    server.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'lookups'");
    testkit::wait::eventually(LIMIT, || server.sessions_in("lookups") == 0);
    lookups.find(&order, QUERY, "scrammed", LIMIT).await.unwrap().unwrap();
    lookups.close_idle(LIMIT);
    assert_eq!(server.sessions_in("lookups"), 1);
    lookups.close_idle(Duration::ZERO);
    testkit::wait::eventually(LIMIT, || server.sessions_in("lookups") == 0);
}

#[tokio::test]
async fn auth_query_of_another_shape_is_refused() {
    let order = as_role("trusted", ServerTls::DISABLED);
    let lookups = Lookups::new(context());
    for query in ["select $1::text", "selec", "select 1, 2, $1", "select null, $1", "begin"] {
        let failed = lookups.find(&order, query, "ann", LIMIT).await;
        assert!(matches!(failed, Err(LookupFailure::Query(_))), "{query} {failed:?}");
    }
    let slow = "select $1::text, pg_sleep(60)::text";
    let failed = lookups.find(&order, slow, "ann", Duration::from_millis(200)).await;
    assert!(matches!(failed, Err(LookupFailure::Timeout)), "{failed:?}");
}

#[tokio::test]
async fn cancel_request_ends_a_query_over_tls() {
    use std::io::{Read, Write};

    let mut order = as_role("trusted", ServerTls::DISABLED);
    let connected = connect(&order, &context()).await.unwrap();
    let mut socket = std::net::TcpStream::from(connected.socket);
    socket.set_nonblocking(false).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let mut query = Vec::new();
    wire::encode::query(&mut query, b"select pg_sleep(60)");
    socket.write_all(&query).unwrap();
    let server = postgres();
    let sleeping =
        "select count(*) from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'";
    testkit::wait::eventually(LIMIT, || server.session("postgres").value(sleeping) == "1");
    order.tls = verifying();
    let cancel = CancelOrder {
        remote: connected.remote,
        host: order.host,
        tls: order.tls,
        tcp: order.tcp,
        process_id: connected.login.process_id,
        key: connected.login.cancel_key,
    };
    CancelSender::new(1, LIMIT).send(&cancel).await.unwrap();
    let mut answer = vec![0; 4096];
    let mut size = 0;
    while !answer[..size].windows(5).any(|part| part == b"57014") {
        let read = socket.read(&mut answer[size..]).unwrap();
        assert!(read > 0, "closed");
        size += read;
    }
}
