//! The reported part of a recording: `--from` and `--to`.

use std::str::FromStr;
use std::time::Duration;

use punctual_trace::read::{ReadError, Trace};

use crate::parse::time;

/// A moment of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// On the trace's clock.
    At(Duration),
    /// After the first event.
    After(Duration),
    /// Before the last event.
    Before(Duration),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(after), _) => time(after).map(Self::After),
            (_, Some(before)) => time(before).map(Self::Before),
            _ => time(text).map(Self::At),
        }
    }
}

impl Moment {
    fn ns(self, (first, last): (u64, u64)) -> u64 {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self {
            Self::At(time) => ns(time),
            Self::After(time) => first.saturating_add(ns(time)),
            Self::Before(time) => last.saturating_sub(ns(time)),
        }
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
        trace: &Trace,
    ) -> Result<Option<Self>, ReadError> {
        if from.is_none() && to.is_none() {
            return Ok(None);
        }
        // Only the end of the data determines the end of the recording.
        let whole = [from, to].iter().any(|moment| matches!(moment, Some(Moment::Before(_))));
        let span = span(trace, whole)?;
        let (from, to) = (from.map_or(0, |from| from.ns(span)), to.map_or(u64::MAX, |to| to.ns(span)));
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
        let ns = |text: &str| text.parse::<Moment>().map(|moment| moment.ns((1_000_000_007, 9_000_000_000)));
        assert_eq!(ns("26493.915051916s"), Ok(26_493_915_051_916));
        assert_eq!(ns("+0.5s"), Ok(1_500_000_007));
        assert_eq!(ns("0s"), Ok(0));
        assert_eq!(ns("-1.5s"), Ok(7_500_000_000));
        for text in ["", "+", "-1", "1", "soon", "+-1s", "nan"] {
            assert!(ns(text).is_err(), "{text}");
        }
    }
}
