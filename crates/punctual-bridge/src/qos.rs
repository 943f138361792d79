//! Quality of service of topics, in the terms of ROS 2.

/// The quality of service of a topic: that which transports offer to subscribers of an outgoing
/// topic, or request from publishers of an incoming one. Recordings ignore it.
///
/// A transport may be configured otherwise when it is started; see the book's guide to topics.
///
/// ```
/// use punctual_bridge::{Durability, Qos};
///
/// let latched = Qos::DEFAULT.durability(Durability::TransientLocal).depth(1);
/// assert_eq!(latched.to_string(), "reliable, transient local, keep last 1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Qos {
    /// The handling of lost messages.
    pub reliability: Reliability,
    /// The handling of subscribers that join later.
    pub durability: Durability,
    /// The number of messages that a transport keeps for sending again, or for reading.
    pub depth: u32,
}

/// The handling of lost messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reliability {
    /// Lost messages are sent again, as far as the depth permits.
    Reliable,
    /// Lost messages are not sent again. A best-effort publisher has no reliable subscribers.
    BestEffort,
    /// Incoming topics: of every publisher, reliably if it is reliable. Outgoing topics: reliable.
    BestAvailable,
}

/// The handling of subscribers that join later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// They receive the messages from then on.
    Volatile,
    /// They receive the last messages of a publisher that still runs ("latched"). A volatile
    /// publisher has no transient-local subscribers.
    TransientLocal,
}

impl Qos {
    /// The default of ROS client libraries: reliable, volatile, with a depth of 10.
    pub const DEFAULT: Self =
        Self { reliability: Reliability::Reliable, durability: Durability::Volatile, depth: 10 };

    /// For sensors, of which only the newest value counts: best effort, volatile, with a depth of
    /// 5.
    pub const SENSOR_DATA: Self = Self { reliability: Reliability::BestEffort, depth: 5, ..Self::DEFAULT };

    /// Receives from reliable and best-effort publishers; otherwise as [`DEFAULT`](Self::DEFAULT).
    pub const BEST_AVAILABLE: Self = Self { reliability: Reliability::BestAvailable, ..Self::DEFAULT };

    /// Sets the reliability.
    #[must_use]
    pub const fn reliability(self, reliability: Reliability) -> Self {
        Self { reliability, ..self }
    }

    /// Sets the durability.
    #[must_use]
    pub const fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sets the depth, in messages; 0 counts as 1.
    #[must_use]
    pub const fn depth(self, depth: u32) -> Self {
        Self { depth: if depth == 0 { 1 } else { depth }, ..self }
    }

    /// Returns its word in a topics file.
    pub(crate) const fn to_word(self) -> u64 {
        let reliability = match self.reliability {
            Reliability::Reliable => 0,
            Reliability::BestEffort => 1,
            Reliability::BestAvailable => 2,
        };
        let durability = match self.durability {
            Durability::Volatile => 0,
            Durability::TransientLocal => 1 << 8,
        };
        reliability | durability | (self.depth as u64) << 32
    }

    /// Returns the quality of service with this word; the default for unknown values.
    pub(crate) const fn from_word(word: u64) -> Self {
        let reliability = match word & 0xff {
            1 => Reliability::BestEffort,
            2 => Reliability::BestAvailable,
            _ => Self::DEFAULT.reliability,
        };
        let durability = match word >> 8 & 0xff {
            1 => Durability::TransientLocal,
            _ => Self::DEFAULT.durability,
        };
        let depth = match (word >> 32) as u32 {
            0 => Self::DEFAULT.depth,
            depth => depth,
        };
        Self { reliability, durability, depth }
    }
}

impl Default for Qos {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl std::fmt::Display for Qos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reliability = match self.reliability {
            Reliability::Reliable => "reliable",
            Reliability::BestEffort => "best effort",
            Reliability::BestAvailable => "best available",
        };
        let durability = match self.durability {
            Durability::Volatile => "volatile",
            Durability::TransientLocal => "transient local",
        };
        write!(f, "{reliability}, {durability}, keep last {}", self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_round_trips() {
        for reliability in [Reliability::Reliable, Reliability::BestEffort, Reliability::BestAvailable] {
            for durability in [Durability::Volatile, Durability::TransientLocal] {
                for depth in [1, 10, u32::MAX] {
                    let qos = Qos { reliability, durability, depth };
                    assert_eq!(Qos::from_word(qos.to_word()), qos);
                }
            }
        }
        assert_eq!(Qos::DEFAULT.depth(0).depth, 1);
    }

    #[test]
    fn unknown_word_is_the_default() {
        assert_eq!(Qos::from_word(0), Qos::DEFAULT);
        assert_eq!(Qos::from_word(0xffff), Qos::DEFAULT);
    }
}
