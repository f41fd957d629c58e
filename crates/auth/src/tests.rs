//! Claims about the whole crate: no secret can be printed by accident.

use std::fmt::Debug;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::hba::Hba;
use crate::login::LoginSecret;
use crate::md5::{Md5Secret, check_md5};
use crate::method::scram_source;
use crate::scram::{
    AwaitClientFirst, Begin, Credential, ITERATIONS_DEFAULT, ITERATIONS_MAX, Mechanisms, MockKey, Nonce,
    ScramLogin, ScramVerifier, begin, salted_password,
};
use crate::userlist::Userlist;
use crate::{Password, StoredSecret};

const CANARY: &str = "canary-7f3a";

/// The forms in which a secret could appear in a text.
fn forms(secret: &[u8]) -> Vec<String> {
    let hex = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let decimal = format!("{secret:?}");
    let decimal = decimal.trim_matches(['[', ']']).to_owned();
    let multiline = secret.iter().map(u8::to_string).collect::<Vec<_>>().join(",\n");
    vec![String::from_utf8_lossy(secret).into_owned(), hex, decimal, multiline, STANDARD.encode(secret)]
}

struct Watch {
    forbidden: Vec<String>,
}

impl Watch {
    #[track_caller]
    fn check(&self, shown: &dyn Debug) {
        for text in [format!("{shown:?}"), format!("{shown:#?}").replace(' ', "")] {
            for secret in &self.forbidden {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
}

fn keys() -> (ScramLogin, ScramVerifier) {
    let password = Password::new(CANARY);
    let login = ScramLogin::derive(&password, b"salt", ITERATIONS_DEFAULT);
    let verifier = ScramVerifier::from_password(&password, b"salt", ITERATIONS_DEFAULT);
    (login, verifier)
}

fn watch() -> Watch {
    let password = Password::new(CANARY);
    let (login, verifier) = keys();
    let md5 = Md5Secret::from_password(&password, "joe");
    let mut forbidden = Vec::new();
    for secret in [
        CANARY.as_bytes(),
        salted_password(&password, b"salt", ITERATIONS_DEFAULT).reveal(),
        login.keys().client_key.reveal(),
        verifier.stored_key().reveal(),
        verifier.server_key().reveal(),
        &md5.to_text().reveal()[3..],
        md5.response([1; 4]).as_bytes(),
        &[0xC5; 32],
    ] {
        forbidden.extend(forms(secret));
    }
    Watch { forbidden }
}

#[test]
fn debug_of_secrets_never_shows_them() {
    let watch = watch();
    let password = Password::new(CANARY);
    let (login, verifier) = keys();
    let md5 = Md5Secret::from_password(&password, "joe");
    let response = md5.response([1; 4]);
    watch.check(&password);
    watch.check(&salted_password(&password, b"salt", ITERATIONS_DEFAULT));
    watch.check(&verifier.to_text());
    watch.check(&md5.to_text());
    watch.check(&response);
    watch.check(&MockKey::new([0xC5; 32]));
    for stored in [
        StoredSecret::Clear(password),
        StoredSecret::Md5(md5),
        StoredSecret::Scram(verifier),
        StoredSecret::Unusable,
    ] {
        watch.check(&stored);
        watch.check(&LoginSecret::from_stored(&stored));
        watch.check(&scram_source(Some(&stored)));
        watch.check(&check_md5(Some(&stored), "joe", [0; 4], response.as_bytes()));
    }
    watch.check(&LoginSecret::Scram(login));
}

#[test]
fn files_and_their_problems_never_show_a_secret() {
    let watch = watch();
    watch.check(&Userlist::parse(format!("\"joe\" \"{CANARY}\"\n\"{CANARY}\n{CANARY}\n").as_bytes()));
    let hba = format!("local all all ldap ldapbindpasswd={CANARY}\nlocal all all {CANARY}\n");
    watch.check(&Hba::parse(hba.as_bytes(), &mut |_| None));
}

#[test]
fn exchanges_never_show_a_secret() {
    let watch = watch();
    let (login, verifier) = keys();
    let verify = AwaitClientFirst::new(Credential::stored(verifier), None, Nonce([2; 18]));
    watch.check(&verify);
    let (prove, first) = begin(Begin {
        offered: Mechanisms { plain: true, plus: false },
        binding: None,
        binding_required: false,
        iterations_max: ITERATIONS_MAX,
        nonce: Nonce([1; 18]),
    })
    .unwrap();
    watch.check(&prove);
    watch.check(&first);
    let (verify, server_first) = verify.handle(b"SCRAM-SHA-256", &first.message).unwrap();
    watch.check(&verify);
    let need = prove.handle(&server_first).unwrap();
    watch.check(&need);
    let (prove, client_final) = need.prove(&login).unwrap();
    watch.check(&prove);
    let verified = verify.handle(&client_final).unwrap();
    watch.check(&verified);
    watch.check(&prove.handle(&verified.server_final));
}
