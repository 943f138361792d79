//! What jobs of message tasks are spawned with.

use crate::token::Token;

/// The arguments of one job.
#[derive(Debug)]
pub struct Arguments {
    /// By which the job is known.
    first: Token,
    second: Option<Token>,
}

impl From<Token> for Arguments {
    fn from(first: Token) -> Self {
        Self { first, second: None }
    }
}

impl From<(Token, Token)> for Arguments {
    fn from((first, second): (Token, Token)) -> Self {
        Self { first, second: Some(second) }
    }
}

// In both, the fate of the job is noted before anything is dropped: a destructor may panic.
impl Arguments {
    /// The spawn gave them back.
    pub(crate) fn refused(self) {
        let Self { first, second } = self;
        first.refused();
        drop(second);
    }

    /// They were taken back before their time.
    pub(crate) fn cancelled(self) {
        let Self { first, second } = self;
        first.cancelled();
        drop(second);
    }
}
