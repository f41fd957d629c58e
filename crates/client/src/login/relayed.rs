//! A login that a server asks for and judges: its questions are put to the client as they come, and the answers are
//! passed on. Knows only that an answer is one password message; what it proves, and by what method, is between the
//! two ends.

use std::fmt;

use auth::Password;

use super::{AwaitAcceptance, Login, Next, Step, answer};

/// The server has the word.
#[derive(Debug)]
pub struct AwaitServer {
    takes_long_keys: bool,
}

/// The server has asked; the client answers.
#[derive(Debug)]
pub struct AwaitAnswer {
    takes_long_keys: bool,
}

/// One password message of the client's, as it came. Not shown, and wiped when it is passed on.
pub struct Answer(Password);

impl Answer {
    /// The whole message.
    pub fn message(&self) -> &[u8] {
        self.0.reveal()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer(..)")
    }
}

impl AwaitServer {
    pub(super) fn new(takes_long_keys: bool) -> AwaitServer {
        AwaitServer { takes_long_keys }
    }

    /// Puts a message of the server's to the client. `is_question`: the client answers it.
    pub fn said(self, message: &[u8], is_question: bool, out: &mut Vec<u8>) -> Next {
        out.extend_from_slice(message);
        Next::Read(match is_question {
            true => Login::Answer(AwaitAnswer { takes_long_keys: self.takes_long_keys }),
            false => Login::Server(self),
        })
    }

    /// The server has let the client in.
    pub fn let_in(self) -> AwaitAcceptance {
        AwaitAcceptance::new(self.takes_long_keys)
    }
}

impl AwaitAnswer {
    pub(super) fn handle(self, input: &[u8]) -> Step {
        match answer(input) {
            Ok(Some((_, consumed))) => {
                let message = Answer(Password::new(&input[..consumed]));
                let waiting = AwaitServer { takes_long_keys: self.takes_long_keys };
                Step { consumed, next: Next::Answer(message, waiting) }
            }
            Ok(None) => Step::unread(Login::Answer(self)),
            Err(unfit) => Step { consumed: 0, next: unfit.into() },
        }
    }
}
