//! Faults that are planted on purpose, to prove that the checkers see them.

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// None: the pooler as it is.
    Nothing,
    /// A server goes back although it still owes replies.
    ReleaseTooEarly,
    /// A server is handed to a waiter, and nobody tells the waiter.
    LoseWaiter,
    /// A cancel request is sent for a server that the client no longer has.
    CancelAfterRelease,
    /// One server more than the limit.
    LimitOffByOne,
    /// A server goes back without the reset that it needs.
    SkipReset,
    /// A server is handed to another client than the one whose turn it is.
    SwapGrant,
    /// What the client had set is not set on its next server.
    SkipCarry,
    /// What a server's socket did not take is not tried again when it has room.
    ForgetBacklog,
    /// A server goes back although its client has state on it.
    ReleaseKept,
    /// A client keeps its server without asking whether it may.
    KeepUnasked,
    /// Servers do not show the locks that they have.
    HideLocks,
    /// Servers show locks that they do not have.
    InventLocks,
    /// Servers of an old node are neither closed nor cut.
    HearTheDead,
    /// The end of a session is told in the middle of a server's message.
    WordsInMessage,
    /// A client's prepared statements are forgotten when it gives a server back.
    LoseNames,
    /// Statements are shared whatever the settings of those who prepare them.
    MixMeanings,
    /// Servers do not forget what they had of sequences.
    KeepDraws,
    /// One in ten notifications is not given to a client.
    DropNotes,
    /// Whoever listens is told of every notification.
    TellStrangers,
    /// A LISTEN is sent before anybody hears its channel.
    HearTooSoon,
    /// Nobody is warned that notifications may be lost.
    LoseInSilence,
}

/// All of them, with the words of the command line.
pub const PLANTS: [(&str, Plant); 21] = [
    ("release-too-early", Plant::ReleaseTooEarly),
    ("lose-waiter", Plant::LoseWaiter),
    ("cancel-after-release", Plant::CancelAfterRelease),
    ("limit-off-by-one", Plant::LimitOffByOne),
    ("skip-reset", Plant::SkipReset),
    ("swap-grant", Plant::SwapGrant),
    ("skip-carry", Plant::SkipCarry),
    ("forget-backlog", Plant::ForgetBacklog),
    ("release-kept", Plant::ReleaseKept),
    ("keep-unasked", Plant::KeepUnasked),
    ("hide-locks", Plant::HideLocks),
    ("invent-locks", Plant::InventLocks),
    ("hear-the-dead", Plant::HearTheDead),
    ("words-in-message", Plant::WordsInMessage),
    ("lose-names", Plant::LoseNames),
    ("mix-meanings", Plant::MixMeanings),
    ("keep-draws", Plant::KeepDraws),
    ("drop-notes", Plant::DropNotes),
    ("tell-strangers", Plant::TellStrangers),
    ("hear-too-soon", Plant::HearTooSoon),
    ("lose-in-silence", Plant::LoseInSilence),
];

impl Plant {
    /// The fault of this name.
    pub fn named(name: &str) -> Option<Plant> {
        PLANTS.iter().find(|(word, _)| *word == name).map(|(_, plant)| *plant)
    }
}
