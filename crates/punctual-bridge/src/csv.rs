//! Comma-separated values.

use std::io::{self, BufWriter, Write};

use crate::message::cdr;
use crate::message::show::columns;
use crate::{Channel, Clock, Sample, Sink};

/// Writes the messages of one topic as comma-separated values, to standard output or a file.
///
/// The first line contains the columns: `time_ns`, in ns since 1970, `sequence`, whose gaps are
/// losses, and each number of the message with its unit, `currents[0] [A]`. Numbers are written so
/// that parsing them returns the same number. A sequence has a column for its length and one for
/// each element up to its capacity; texts are quoted.
#[derive(Debug)]
pub struct Csv<W: Write> {
    topic: &'static str,
    to: BufWriter<W>,
}

impl<W: Write + Send> Csv<W> {
    /// Writes the topic with this name to `to`.
    pub fn new(topic: &'static str, to: W) -> Self {
        Self { topic, to: BufWriter::new(to) }
    }
}

impl<W: Write + Send> Sink for Csv<W> {
    fn name(&self) -> String {
        format!("CSV of {}", self.topic)
    }

    fn takes(&self, channel: &Channel) -> bool {
        channel.topic == self.topic
    }

    fn begin(&mut self, channels: &[Channel], _: Clock) -> io::Result<()> {
        let Some(channel) = channels.iter().find(|channel| channel.topic == self.topic) else {
            let known: Vec<&str> = channels.iter().map(|channel| channel.topic).collect();
            let message = format!("the bridge has no topic {}; it has {}", self.topic, known.join(", "));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        writeln!(self.to, "time_ns,sequence,{}", columns(channel.description).join(","))
    }

    fn write(&mut self, channel: &Channel, sample: &Sample<'_>) -> io::Result<()> {
        write!(self.to, "{},{}", sample.time_ns, sample.sequence)?;
        let mut result = Ok(());
        cdr::cells(channel.description, sample.payload, &mut |cell| {
            if result.is_ok() {
                result = write!(self.to, ",{cell}");
            }
        });
        result?;
        writeln!(self.to)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
        self.to.flush()
    }
}
