//! The decoders of single messages.

use wire::client::{BindHead, Parse, SaslInitial};
use wire::server::ErrorFields;
use wire::startup::First;
use wire::{HEADER_SIZE, Header};

/// Every message that the input begins with, as far as it is there.
fn each(input: &[u8], mut look: impl FnMut(Header, &[u8])) {
    let mut rest = input;
    while let Some(header) = Header::peek(rest) {
        let end = (header.total() as usize).clamp(HEADER_SIZE, rest.len());
        look(header, &rest[HEADER_SIZE..end]);
        rest = &rest[end..];
    }
}

pub(super) fn client(input: &[u8]) {
    each(input, |header, body| {
        let _ = header.check_client().map_err(|fault| fault.to_string());
        if let Ok(parse) = Parse::read(body) {
            assert!(parse.query().len() < parse.rest.len(), "a text is a part of the message");
        }
        if let Some(head) = BindHead::peek(body) {
            assert!(head.size() <= body.len(), "the names are a part of the message");
        }
        let _ = wire::client::target(body);
        let _ = wire::client::query(body);
        let _ = wire::client::password(body);
        let _ = SaslInitial::parse(body);
    });
}

pub(super) fn server(input: &[u8]) {
    each(input, |header, body| {
        let _ = header.check_server().map_err(|fault| fault.to_string());
        let _ = wire::server::ready_for_query(body);
        let _ = wire::server::parameter_status(body);
        let _ = wire::server::command_tag(body);
        let _ = wire::server::backend_key(body);
        let _ = wire::server::authentication(body);
        let _ = wire::server::negotiate_protocol_version(body);
        let _ = ErrorFields::parse(body).is_fatal();
    });
}

pub(super) fn startup(input: &[u8]) {
    let Ok(Some(length)) = wire::startup::length(input) else { return };
    let Some(packet) = input.get(..length) else { return };
    match First::parse(packet) {
        Ok(First::Startup(startup)) => {
            let read: usize = startup.parameters().map(|(name, value)| name.len() + value.len() + 2).sum();
            assert!(read <= packet.len(), "all parameters are a part of the message");
        }
        Ok(First::CancelRequest { key, .. }) => assert!(key.len() <= 256, "a key has at most 256 bytes"),
        Ok(First::SslRequest | First::GssEncRequest) => {}
        Err(fault) => drop(fault.to_string()),
    }
}
