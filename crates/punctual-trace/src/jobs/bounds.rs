//! How well a component of a job is known.

/// A length of time, in ns, as well as the trace determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bounds {
    /// Known to the nanosecond of the trace's clock.
    Exact(u64),
    /// Between two lengths, both included.
    Between {
        /// At least this.
        lo: u64,
        /// At most this.
        hi: u64,
    },
    /// The trace does not say.
    #[default]
    Unknown,
}

impl Bounds {
    /// Exact if both bounds agree.
    #[must_use]
    pub fn between(lo: u64, hi: u64) -> Self {
        if lo >= hi { Self::Exact(hi) } else { Self::Between { lo, hi } }
    }

    /// The least it can be; of an unknown one, nothing.
    #[must_use]
    pub fn lo(self) -> Option<u64> {
        match self {
            Self::Exact(ns) | Self::Between { lo: ns, .. } => Some(ns),
            Self::Unknown => None,
        }
    }

    /// The most it can be; of an unknown one, nothing. Statistics count this, which is the safe side.
    #[must_use]
    pub fn hi(self) -> Option<u64> {
        match self {
            Self::Exact(ns) | Self::Between { hi: ns, .. } => Some(ns),
            Self::Unknown => None,
        }
    }

    /// Whether `ns` is among the lengths it can have. Everything is, if it is unknown.
    #[must_use]
    pub fn allows(self, ns: u64) -> bool {
        match self {
            Self::Exact(exact) => exact == ns,
            Self::Between { lo, hi } => (lo..=hi).contains(&ns),
            Self::Unknown => true,
        }
    }

    /// `exact`, `bounded` or `unknown`.
    #[must_use]
    pub fn precision(self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Between { .. } => "bounded",
            Self::Unknown => "unknown",
        }
    }

    /// This much longer.
    #[must_use]
    pub(crate) fn plus(self, ns: u64) -> Self {
        match self {
            Self::Exact(exact) => Self::Exact(exact.saturating_add(ns)),
            Self::Between { lo, hi } => {
                Self::Between { lo: lo.saturating_add(ns), hi: hi.saturating_add(ns) }
            }
            Self::Unknown => Self::Unknown,
        }
    }
}
