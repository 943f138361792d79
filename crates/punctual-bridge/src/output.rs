//! Sinks of a bridge, on the helper's thread or on separate threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual::background::{Traffic, warn};

use crate::contained;
use crate::report::SinkReport;
use crate::sink::{Channel, Sample, Sink};

/// The interval at which sinks flush.
pub(crate) const FLUSH_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum size of the messages that wait for a sink with a separate thread, in bytes.
const MAX_QUEUED_BYTES: usize = 16 << 20;

/// A sink of the bridge.
pub(crate) struct Output {
    pub(crate) sink: Box<dyn Sink>,
    /// For each topic, `true` if the sink takes it.
    pub(crate) takes: Vec<bool>,
    pub(crate) report: SinkReport,
    pub(crate) traffic: Traffic,
}

impl Output {
    /// Passes a message to the sink.
    pub(crate) fn write(&mut self, channel: &Channel, sample: &Sample<'_>) {
        let mut has_room = true;
        let went_well = self.call(|sink| match sink.write(channel, sample) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                has_room = false;
                Ok(())
            }
            result => result,
        });
        let count = match (went_well, has_room) {
            (true, true) => &mut self.report.written,
            (true, false) => &mut self.report.dropped,
            (false, _) => &mut self.report.missed,
        };
        *count += 1;
    }

    /// Calls the sink, unless it has failed before; returns `true` on success.
    pub(crate) fn call(&mut self, f: impl FnOnce(&mut dyn Sink) -> io::Result<()>) -> bool {
        if self.report.error.is_some() {
            return false;
        }
        // It is not called again after a panic.
        let error = match contained(|| f(self.sink.as_mut())) {
            Some(Ok(())) => return true,
            Some(Err(error)) => error.to_string(),
            None => "it panicked".into(),
        };
        warn(format_args!("{}: {error}; nothing more is written there", self.report.name));
        self.report.error = Some(error);
        false
    }

    /// Shows the counts of messages, of which `dropped` did not reach the sink.
    pub(crate) fn count(&self, dropped: u64) {
        let SinkReport { written, missed, .. } = self.report;
        self.traffic.set(written, self.report.dropped + missed + dropped, 0);
    }
}

/// A sink with a separate thread, so that a stalled disk delays neither topics nor transports.
pub(crate) struct OutputThread {
    pub(crate) takes: Vec<bool>,
    /// The messages of the present round.
    batch: Batch,
    sender: Sender<Batch>,
    queue: Arc<Queue>,
    thread: JoinHandle<SinkReport>,
}

/// The state that both threads access.
#[derive(Default)]
struct Queue {
    /// The size of the messages that wait.
    bytes: AtomicUsize,
    /// The number of messages for which there was no room.
    dropped: AtomicU64,
}

/// Messages for a sink, one after the other.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    messages: Vec<Queued>,
    /// The losses of each topic, in the last batch.
    end: Option<Vec<(&'static str, u64)>>,
}

impl Batch {
    /// Returns its size in bytes.
    fn size(&self) -> usize {
        self.bytes.len() + self.messages.len() * size_of::<Queued>()
    }
}

struct Queued {
    channel: usize,
    time_ns: u64,
    monotonic_ns: u64,
    sequence: u32,
    length: usize,
}

impl OutputThread {
    pub(crate) fn start(output: Output, channels: Vec<Channel>) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let (queue, takes) = (Arc::new(Queue::default()), output.takes.clone());
        let theirs = Arc::clone(&queue);
        let run = move || run(output, &channels, &receiver, &theirs);
        let thread = punctual::background::spawn("punctual-sink", run)?;
        Ok(Self { takes, batch: Batch::default(), sender, queue, thread })
    }

    /// Appends a message to the batch; drops and counts it if too many wait.
    pub(crate) fn write(&mut self, sample: &Sample<'_>) {
        let &Sample { channel, time_ns, monotonic_ns, sequence, payload } = sample;
        // Relaxed: only a limit.
        let queued = self.queue.bytes.load(Ordering::Relaxed) + self.batch.size();
        if queued + payload.len() + size_of::<Queued>() > MAX_QUEUED_BYTES {
            self.queue.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.batch.bytes.extend_from_slice(payload);
        let length = payload.len();
        self.batch.messages.push(Queued { channel, time_ns, monotonic_ns, sequence, length });
    }

    /// Passes the batch to the thread.
    pub(crate) fn send(&mut self) {
        if !self.batch.messages.is_empty() || self.batch.end.is_some() {
            self.queue.bytes.fetch_add(self.batch.size(), Ordering::Relaxed);
            // The thread ends after the last batch.
            let _ = self.sender.send(std::mem::take(&mut self.batch));
        }
    }

    /// Ends the sink, and returns its counts.
    pub(crate) fn finish(mut self, losses: &[(&'static str, u64)]) -> SinkReport {
        self.batch.end = Some(losses.to_vec());
        self.send();
        // Panics of the sink are caught, and the rest of the thread does not panic.
        self.thread.join().unwrap_or_else(|_| SinkReport::new(String::new()))
    }
}

/// Passes batches to the sink until the last one.
fn run(mut output: Output, channels: &[Channel], receiver: &Receiver<Batch>, queue: &Queue) -> SinkReport {
    let mut flushed = Instant::now();
    loop {
        let mut end = None;
        match receiver.recv_timeout(FLUSH_INTERVAL.saturating_sub(flushed.elapsed())) {
            Ok(batch) => {
                let mut rest = &*batch.bytes;
                for &Queued { channel, time_ns, monotonic_ns, sequence, length } in &batch.messages {
                    let (payload, next) = rest.split_at(length);
                    rest = next;
                    let sample = Sample { channel, time_ns, monotonic_ns, sequence, payload };
                    output.write(&channels[channel], &sample);
                }
                queue.bytes.fetch_sub(batch.size(), Ordering::Relaxed);
                end = batch.end;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => end = Some(vec![]),
        }
        let dropped = queue.dropped.load(Ordering::Relaxed);
        output.count(dropped);
        if let Some(losses) = end {
            output.call(|sink| sink.end(&losses));
            output.report.dropped += dropped;
            return output.report;
        }
        if flushed.elapsed() >= FLUSH_INTERVAL {
            output.call(|sink| sink.flush());
            flushed = Instant::now();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::mpsc::SyncSender;
    use std::thread;

    use super::*;
    use crate::Clock;

    const LIMIT: Duration = Duration::from_secs(10);

    /// Reports the time in ns and the length of each message, waits until the report is received,
    /// and fails without a receiver. Reports each flush without waiting.
    struct Slow {
        messages: SyncSender<(u64, usize)>,
        flushes: Sender<()>,
    }

    impl Sink for Slow {
        fn name(&self) -> String {
            "slow".to_owned()
        }
        fn begin(&mut self, _: &[Channel], _: Clock) -> io::Result<()> {
            Ok(())
        }
        fn write(&mut self, _: &Channel, sample: &Sample<'_>) -> io::Result<()> {
            self.messages.send((sample.time_ns, sample.payload.len())).map_err(io::Error::other)
        }
        fn flush(&mut self) -> io::Result<()> {
            // Most tests do not receive it.
            let _ = self.flushes.send(());
            Ok(())
        }
        fn end(&mut self, _: &[(&'static str, u64)]) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the output of a [`Slow`] sink, and its reports of messages and flushes.
    pub(crate) fn slow() -> (Output, Receiver<(u64, usize)>, Receiver<()>) {
        let (messages, written) = std::sync::mpsc::sync_channel(0);
        let (flushes, flushed) = channel();
        let sink = Box::new(Slow { messages, flushes });
        let traffic = Traffic::new("slow");
        let output = Output { sink, takes: vec![true], report: SinkReport::new("slow".into()), traffic };
        (output, written, flushed)
    }

    fn topic() -> Channel {
        let description = <crate::messages::Vector3 as crate::Message>::DESCRIPTION;
        let qos = crate::Qos::DEFAULT;
        Channel { topic: "/slow", hz: None, capacity: 4, qos, description, is_input: false }
    }

    #[test]
    fn shows_missed_messages_as_lost() {
        let (mut output, written, _) = slow();
        drop(written);
        let sample = Sample { channel: 0, time_ns: 0, monotonic_ns: 0, sequence: 0, payload: &[] };
        (0..3).for_each(|_| output.write(&topic(), &sample));
        assert_eq!(output.report.missed, 3);
        output.count(4);
        let shown = format!("{:?}", output.traffic);
        assert!(shown.contains("carried: 0, lost: 7,"), "{shown}");
    }

    #[test]
    fn flushes_a_sink_on_a_separate_thread() {
        let (output, _, flushed) = slow();
        let thread = OutputThread::start(output, vec![topic()]).unwrap();
        assert_eq!(flushed.recv_timeout(LIMIT), Ok(()));
        assert_eq!(thread.finish(&[]).error, None);
    }

    #[test]
    fn drops_and_counts_what_a_slow_sink_has_no_room_for() {
        let (output, written, _) = slow();
        let mut thread = OutputThread::start(output, vec![topic()]).unwrap();
        let payload = vec![0; MAX_QUEUED_BYTES / 4 - size_of::<Queued>()];
        let sample = Sample { channel: 0, time_ns: 0, monotonic_ns: 0, sequence: 0, payload: &payload };
        for round in [1, 2] {
            // Three of them are queued in one batch, the fourth in another, and there is no room
            // for the fifth.
            (0..3).for_each(|_| thread.write(&sample));
            thread.send();
            (0..2).for_each(|_| thread.write(&sample));
            thread.send();
            assert_eq!(thread.queue.dropped.load(Ordering::Relaxed), round);
            assert!((0..4).all(|_| written.recv_timeout(LIMIT) == Ok((0, payload.len()))));
            let end = Instant::now() + LIMIT;
            while thread.queue.bytes.load(Ordering::Relaxed) > 0 {
                assert!(Instant::now() < end, "the queue is still full");
                thread::yield_now();
            }
        }
        let report = thread.finish(&[]);
        assert_eq!((report.written, report.dropped), (8, 2));
    }

    #[test]
    fn limits_memory_of_short_messages() {
        let (output, written, _) = slow();
        let mut thread = OutputThread::start(output, vec![topic()]).unwrap();
        let sample = Sample { channel: 0, time_ns: 0, monotonic_ns: 0, sequence: 0, payload: &[] };
        let room = MAX_QUEUED_BYTES / size_of::<Queued>();
        (0..room).for_each(|_| thread.write(&sample));
        assert_eq!(thread.queue.dropped.load(Ordering::Relaxed), 0);
        thread.write(&sample);
        assert_eq!(thread.queue.dropped.load(Ordering::Relaxed), 1);
        drop(written);
        assert_eq!(thread.finish(&[]).dropped, 1);
    }
}
