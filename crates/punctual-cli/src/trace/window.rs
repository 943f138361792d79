//! The reported part of a recording: `--from`, `--to`, `--last`.

use std::str::FromStr;
use std::time::Duration;

use punctual_trace::read::{ReadError, Trace};

use crate::parse::seconds;

/// A moment of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// On the trace's clock.
    At(Duration),
    /// After the first event.
    After(Duration),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('+') {
            Some(after) => seconds(after).map(Self::After),
            None => seconds(text).map(Self::At),
        }
    }
}

impl Moment {
    fn ns(self, first: u64) -> u64 {
        let (start, time) = match self {
            Self::At(time) => (0, time),
            Self::After(time) => (first, time),
        };
        start.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The reported part, on the trace's clock. Jobs that end in it count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Window {
    /// Returns the part selected on the command line, if any.
    pub(crate) fn of(
        from: Option<Moment>,
        to: Option<Moment>,
        last: Option<Duration>,
        trace: &Trace,
    ) -> Result<Option<Self>, ReadError> {
        if from.is_none() && to.is_none() && last.is_none() {
            return Ok(None);
        }
        // Only the end of the data determines the end of the recording.
        let (first, end) = span(trace, last.is_some())?;
        let to = to.map_or(u64::MAX, |to| to.ns(first));
        let from = match last {
            Some(last) => end.saturating_sub(Moment::At(last).ns(0)),
            None => from.map_or(0, |from| from.ns(first)),
        };
        Ok(Some(Self { from, to }))
    }
}

/// Returns the time of the first event, and of the last if requested. Read errors are reported when
/// the trace is analyzed.
fn span(trace: &Trace, whole: bool) -> Result<(u64, u64), ReadError> {
    let mut events = trace.events()?;
    let mut span = None;
    while let Some(run) = events.next_run() {
        if let Ok([first, .., last] | [first @ last]) = run {
            span = Some((span.map_or(first.time, |(start, _)| start), last.time));
            if !whole {
                break;
            }
        }
    }
    Ok(span.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_absolute_and_relative_instants() {
        let ns = |text: &str| text.parse::<Moment>().map(|moment| moment.ns(1_000_000_007));
        assert_eq!(ns("26493.915051916"), Ok(26_493_915_051_916));
        assert_eq!(ns("+0.5"), Ok(1_500_000_007));
        assert_eq!(ns("0"), Ok(0));
        for text in ["", "+", "-1", "soon", "+-1", "nan"] {
            assert!(ns(text).is_err(), "{text}");
        }
    }
}
