//! Statements about whole databases: which names the holder of the sockets is told, and when.

use std::sync::Arc;

use model::StateMode;
use wire::client::tag;
use wire::encode;

use crate::Policy;

use super::harness::{Seat, parameters, server};

fn seat(state: StateMode) -> Seat {
    let nothing = parameters(&[]);
    let policy = Policy { state, ..Policy::default() };
    let mut seat = Seat::new(1, &policy, &Arc::default(), Arc::clone(&nothing));
    seat.grant(server(1, nothing), false);
    seat
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let rest = [text.as_bytes(), &[0, 0, 0]].concat();
    encode::parse(&mut bytes, name.as_bytes(), &rest);
    bytes
}

fn run(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::bind_text(&mut bytes, b"", name.as_bytes(), &[]);
    encode::message(&mut bytes, tag::EXECUTE, |bytes| bytes.extend_from_slice(&[0; 5]));
    encode::sync(&mut bytes);
    bytes
}

#[test]
fn a_query_names_the_databases_that_it_drops_or_makes() {
    for state in [StateMode::Carry, StateMode::Pin, StateMode::Refuse] {
        let mut seat = seat(state);
        let mut bytes = Vec::new();
        encode::query(&mut bytes, b"drop database if exists \"A b\"");
        seat.client_says(&bytes);
        assert_eq!(seat.databases, ["A b"]);
        assert_eq!(seat.to_server, bytes, "it is sent as it is");
    }
    let mut off = seat(StateMode::Off);
    let mut bytes = Vec::new();
    encode::query(&mut bytes, b"drop database a");
    off.client_says(&bytes);
    assert!(off.databases.is_empty(), "nobody looks at it");
}

#[test]
fn a_prepared_statement_names_them_when_it_is_run() {
    for name in ["", "named"] {
        let mut seat = seat(StateMode::Carry);
        seat.client_says(&parse(name, "create database a template b"));
        assert!(seat.databases.is_empty());
        seat.client_says(&run(name));
        assert_eq!(seat.databases, ["a", "b"]);
    }
}

#[test]
fn a_string_of_them_names_a_few() {
    let mut seat = seat(StateMode::Carry);
    let mut bytes = Vec::new();
    encode::query(&mut bytes, "drop database a;".repeat(1000).as_bytes());
    seat.client_says(&bytes);
    assert!(seat.databases.len() < 10);
}
