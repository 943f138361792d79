//! Comparison of published messages with the recorded ones.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::io;
use std::sync::Arc;

use super::difference::{Timed, first};
use super::run::{Shared, seconds};
use super::source::{Messages, Recorded, RecordedTopic};
use crate::message::Description;
use crate::message::ros2msg::Dialect;
use crate::{Channel, Clock, Sample, Sink, replay};

/// The limit of the recorded messages that wait for their counterparts, in bytes.
const MAX_WAITING_BYTES: usize = 256 << 20;
/// The length of the end of a truncated recording, in ns, in which messages may be missing: the
/// interval of flushes and a pause of the bridge.
const UNCERTAIN_END_NS: u64 = 1_000_000_000;

/// The state of a recorded topic.
#[derive(Debug, Default)]
struct Compared {
    waiting: VecDeque<Recorded>,
    /// The first sequence numbers: in the recording, and in the replay.
    first: Option<(u32, u32)>,
    equal: u64,
    /// The first difference, with its instant in ns.
    difference: Option<(u64, String)>,
    /// `true` if the app publishes it, with the recorded type.
    is_published: bool,
}

/// A sink that compares every message with the recorded one.
pub(super) struct Comparison {
    shared: Arc<Shared>,
    messages: Messages,
    is_read: bool,
    waiting_bytes: usize,
    /// By index in [`Messages::topics`].
    topics: Vec<Compared>,
    /// The topic of each channel of the bridge; `None` if it was not recorded, or is an input.
    recorded: Vec<Option<usize>>,
    /// The published topics, with name and definition of their type.
    types: BTreeMap<&'static str, (String, String)>,
    /// Names of published topics that the recording lacks.
    new: Vec<&'static str>,
    /// The largest difference of two instants, in ns.
    deviation_ns: u64,
}

/// Returns name and definition of a type, as recordings have them.
fn definition(description: &'static Description) -> (String, String) {
    (description.name().to_owned(), Dialect::Ros2.definition(description))
}

impl Comparison {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, String> {
        let messages = Messages::open(&shared.path).map_err(|error| error.to_string())?;
        let mut topics = vec![];
        topics.resize_with(shared.frame.topics.len(), Compared::default);
        Ok(Self {
            shared,
            messages,
            is_read: false,
            waiting_bytes: 0,
            topics,
            recorded: vec![],
            types: BTreeMap::new(),
            new: vec![],
            deviation_ns: 0,
        })
    }

    /// Returns the next recorded message of a topic, and leaves it in the queue.
    fn next(&mut self, topic: usize) -> io::Result<Option<&Recorded>> {
        while self.topics[topic].waiting.is_empty() && !self.is_read {
            let Some(message) = self.messages.next().map_err(io::Error::other)? else {
                self.is_read = true;
                break;
            };
            let state = &mut self.topics[message.topic];
            if state.is_published && state.difference.is_none() {
                self.waiting_bytes += message.payload.len() + size_of::<Recorded>();
                state.waiting.push_back(message);
            }
            if self.waiting_bytes > MAX_WAITING_BYTES {
                let message = "the app publishes a topic much later than recorded: 256 MiB of others wait";
                return Err(io::Error::other(message));
            }
        }
        Ok(self.topics[topic].waiting.front())
    }

    /// Removes the next recorded message of a topic.
    fn take(&mut self, topic: usize) -> Option<Recorded> {
        let message = self.topics[topic].waiting.pop_front()?;
        self.waiting_bytes -= message.payload.len() + size_of::<Recorded>();
        Some(message)
    }

    /// Records the first difference of a topic. The rest of it is not compared.
    fn differs(&mut self, topic: usize, instant_ns: u64, what: &str) {
        let name = &self.shared.frame.topics[topic].name;
        let number = self.topics[topic].equal;
        let text = format!("{name} at {}, after {number} equal messages: {what}", seconds(instant_ns));
        self.topics[topic].difference = Some((instant_ns, text));
        while self.take(topic).is_some() {}
    }

    fn compare(&mut self, topic: usize, channel: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        loop {
            let next = self.next(topic)?.map(|recorded| recorded.sequence);
            let Some(sequence) = next else {
                // The app ends at about the end of the recording, and nothing is known of later.
                let frame = &self.shared.frame;
                let uncertain = if frame.damage.is_some() { UNCERTAIN_END_NS } else { 0 };
                if sample.monotonic_ns.saturating_add(uncertain) < frame.last_ns {
                    self.differs(topic, sample.monotonic_ns, "a message is published that was not recorded");
                }
                return Ok(());
            };
            let (before, now) = *self.topics[topic].first.get_or_insert((sequence, sample.sequence));
            let ahead = sequence.wrapping_sub(before).wrapping_sub(sample.sequence.wrapping_sub(now));
            if ahead.cast_signed() > 0 {
                // The recording has lost this one.
                return Ok(());
            }
            let Some(recorded) = self.take(topic) else { return Ok(()) };
            if ahead.cast_signed() < 0 {
                continue;
            }
            let instant = self.shared.frame.instant_ns(&recorded);
            let before = Timed { time_ns: recorded.time_ns, payload: &recorded.payload };
            let now = Timed { time_ns: sample.time_ns, payload: sample.payload };
            let deviation = instant.abs_diff(sample.monotonic_ns);
            if let Some(difference) = first(channel.description, before, now) {
                let time = match deviation {
                    0 => String::new(),
                    _ => format!("; the instant is {} in the replay", seconds(sample.monotonic_ns)),
                };
                self.differs(topic, instant, &format!("{difference}{time}"));
            } else if deviation > 0 && self.shared.frame.is_virtual {
                let time = seconds(sample.monotonic_ns);
                self.differs(topic, instant, &format!("the instant is {time} in the replay"));
            } else {
                self.topics[topic].equal += 1;
                self.deviation_ns = self.deviation_ns.max(deviation);
            }
            return Ok(());
        }
    }

    /// Returns the findings in the order of their instants, and completes the comparison.
    fn findings(&mut self) -> io::Result<Vec<String>> {
        for topic in 0..self.topics.len() {
            if self.topics[topic].is_published
                && self.topics[topic].difference.is_none()
                && let Some(missing) = self.next(topic)?.cloned()
            {
                let instant = self.shared.frame.instant_ns(&missing);
                self.differs(topic, instant, "the recorded message is not published in the replay");
            }
        }
        let mut findings = std::mem::take(&mut self.shared.fed().findings);
        findings.extend(self.compare_topics().into_iter().map(|finding| (0, finding)));
        findings.extend(self.topics.iter_mut().filter_map(|topic| topic.difference.take()));
        // Stable: topics without a counterpart come first.
        findings.sort_by_key(|(instant, _)| *instant);
        Ok(findings.into_iter().map(|(_, finding)| finding).collect())
    }

    /// Returns findings for recorded topics that the app does not have, or has with another type.
    fn compare_topics(&self) -> Vec<String> {
        let frame = &self.shared.frame;
        let mut findings = vec![];
        for (topic, count) in frame.topics.iter().zip(&frame.counts) {
            let RecordedTopic { name, message, is_input } = topic;
            let input = replay::find_input(name).map(|input| definition(input.description()));
            let found = input.as_ref().or_else(|| self.types.get(&**name).filter(|_| !is_input));
            match found {
                None => {
                    let verb = if *is_input { "receives" } else { "publishes" };
                    let plural = if *count == 1 { "" } else { "s" };
                    findings.push(format!(
                        "{name}: the app no longer {verb} it ({count} message{plural} recorded)"
                    ));
                }
                Some(found) if *found != **message => {
                    let (before, now) = (&message.0, &found.0);
                    findings.push(format!("{name}: its type has changed: recorded {before}, now {now}"));
                }
                Some(_) => {}
            }
        }
        findings
    }

    fn summary(&self) -> String {
        let (frame, fed) = (&self.shared.frame, self.shared.fed().messages);
        let equal: u64 = self.topics.iter().map(|topic| topic.equal).sum();
        let compared = self.topics.iter().filter(|topic| topic.is_published).count();
        let mut text = format!(
            "{}: {fed} inputs replayed in {} of virtual time, {equal} messages of {compared} topics are equal\n",
            self.shared.path.display(),
            seconds(frame.last_ns)
        );
        if self.deviation_ns > 0 {
            let deviation = seconds(self.deviation_ns);
            let _ = writeln!(text, "instants differ from those in real time by up to {deviation}");
        }
        if let Some(damage) = &frame.damage {
            let _ = writeln!(text, "the recording ends without its index: {damage}");
        }
        if !self.new.is_empty() {
            let _ = writeln!(text, "not recorded: {}", self.new.join(", "));
        }
        text
    }
}

impl Sink for Comparison {
    fn name(&self) -> String {
        format!("replay of {}", self.shared.path.display())
    }

    fn begin(&mut self, channels: &[Channel], _: Clock) -> io::Result<()> {
        let topics = &self.shared.frame.topics;
        for channel in channels {
            let message = definition(channel.description);
            let same = |topic: &RecordedTopic| {
                topic.name == channel.topic && !topic.is_input && *topic.message == message
            };
            let index = topics.iter().position(same).filter(|_| !channel.is_input);
            if !topics.iter().any(|topic| topic.name == channel.topic) {
                self.new.push(channel.topic);
            }
            if let Some(index) = index {
                self.topics[index].is_published = true;
            }
            self.recorded.push(index);
            self.types.insert(channel.topic, message);
        }
        Ok(())
    }

    fn write(&mut self, channel: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        let Some(topic) = self.recorded[sample.channel] else { return Ok(()) };
        if self.topics[topic].difference.is_some() {
            return Ok(());
        }
        if replay::find_input(channel.topic).is_some() {
            // Parameters are inputs that the app publishes as well.
            self.topics[topic].is_published = false;
            while self.take(topic).is_some() {}
            self.recorded[sample.channel] = None;
            return Ok(());
        }
        self.compare(topic, channel, sample).inspect_err(|error| {
            self.shared.end("different", &format!("the comparison has ended: {error}\n"));
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        for index in 0..self.topics.len() {
            if replay::find_input(&self.shared.frame.topics[index].name).is_some() {
                self.topics[index].is_published = false;
            }
        }
        let findings = self.findings()?;
        let has_topics = self.recorded.iter().any(Option::is_some)
            || self.shared.frame.topics.iter().any(|topic| replay::find_input(&topic.name).is_some());
        if !has_topics {
            let path = self.shared.path.display();
            let text =
                format!("{path} is a recording of another app: none of its topics is one of this app\n");
            self.shared.end("invalid", &text);
            return Ok(());
        }
        match findings.split_first() {
            None => self.shared.end("equal", &self.summary()),
            Some((first, others)) => {
                let mut text = format!("first difference: {first}\n");
                others.iter().for_each(|other| _ = writeln!(text, "also: {other}"));
                self.shared.end("different", &(text + &self.summary()));
            }
        }
        Ok(())
    }
}
