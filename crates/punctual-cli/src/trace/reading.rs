//! Reads a trace on a separate thread while the caller analyzes it: both take about as long.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{Scope, ScopedJoinHandle};

use punctual_trace::event::Event;
use punctual_trace::read::merge::BATCH as RUN;
use punctual_trace::read::{Events, ReadError};

use super::names::{NameWatch, NewNames};

/// Number of events in a batch. All batches together fit into the cache.
const BATCH: usize = 2048;
/// Maximum number of waiting batches.
const MAX_QUEUED: usize = 4;

/// A part of the trace.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Names to add before the events.
    pub(crate) news: Option<NewNames>,
    pub(crate) events: Vec<Event>,
    /// The error that follows them.
    pub(crate) problem: Option<ReadError>,
}

/// A trace that is being read. Dropping it ends the reading.
pub(crate) struct Reading<'scope> {
    batches: Receiver<Batch>,
    used: SyncSender<Vec<Event>>,
    thread: ScopedJoinHandle<'scope, Events>,
}

impl<'scope> Reading<'scope> {
    /// Starts to read.
    pub(crate) fn start<'env>(scope: &'scope Scope<'scope, 'env>, events: Events) -> std::io::Result<Self> {
        let (send, batches) = mpsc::sync_channel(MAX_QUEUED);
        let (used, reuse) = mpsc::sync_channel(MAX_QUEUED + 2);
        let thread = std::thread::Builder::new().name("punctual-read".into());
        let thread = thread.spawn_scoped(scope, move || read(events, &send, &reuse))?;
        Ok(Self { batches, used, thread })
    }

    /// Returns the next batch, or `None` at the end.
    pub(crate) fn next(&self) -> Option<Batch> {
        self.batches.recv().ok()
    }

    /// Recycles the memory of a batch.
    pub(crate) fn give_back(&self, mut events: Vec<Event>) {
        events.clear();
        // If enough buffers are waiting, this one is dropped.
        let _ = self.used.try_send(events);
    }

    /// Stops reading and returns the reader, unless it panicked.
    pub(crate) fn end(self) -> Option<Events> {
        drop(self.batches);
        self.thread.join().ok()
    }
}

fn read(mut events: Events, send: &SyncSender<Batch>, reuse: &Receiver<Vec<Event>>) -> Events {
    let room = || reuse.try_recv().unwrap_or_default();
    let mut seen = NameWatch::default();
    let mut batch = Batch::default();
    loop {
        let before = batch.events.len();
        let problem = match events.next_run() {
            Some(Ok(run)) => {
                batch.events.extend_from_slice(run);
                None
            }
            Some(Err(problem)) => Some(problem),
            None => {
                let _ = send.send(batch);
                return events;
            }
        };
        let mut is_sent = Ok(());
        let news = seen.news(&events);
        if news.is_some() {
            // Names come right before the events that need them.
            let mut next = Batch { news, events: room(), problem: None };
            next.events.extend(batch.events.drain(before..));
            is_sent = send.send(std::mem::replace(&mut batch, next));
        }
        if problem.is_some() || batch.events.len() + RUN > BATCH {
            batch.problem = problem;
            let next = Batch { events: room(), ..Batch::default() };
            is_sent = is_sent.and(send.send(std::mem::replace(&mut batch, next)));
        }
        if is_sent.is_err() {
            return events;
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_trace::event::{Comm, Kind, SwitchOut, Task};
    use punctual_trace::read::Trace;
    use punctual_trace::write::synthetic::Synthetic;

    use super::*;

    const EVENTS: u64 = 3 * BATCH as u64;

    /// A thread runs every other time, and has another name in the second half.
    fn events() -> Events {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("raw");
        let mut synthetic = Synthetic::create(&directory).unwrap();
        let (idle, worker) = (Task { id: 0, priority: 120 }, Task { id: 7, priority: 10 });
        for time in 0..EVENTS {
            synthetic.name(7, if time < EVENTS / 2 { "first" } else { "second" });
            let (from, to) = if time % 2 == 0 { (idle, worker) } else { (worker, idle) };
            let kind = Kind::Switch { from, reason: SwitchOut::Sleeping, to };
            synthetic.push(&punctual_trace::event::Event { time, cpu: 0, by: from.id, kind }).unwrap();
        }
        synthetic.finish().unwrap();
        Trace::open(&directory).unwrap().events().unwrap()
    }

    #[test]
    fn delivers_events_in_order_and_names_before_their_events() {
        let (mut times, mut names) = (Vec::new(), Vec::new());
        thread_scope(|reading| {
            while let Some(Batch { events, problem, .. }) = reading.next() {
                assert!(problem.is_none() && events.len() <= BATCH);
                for event in &events {
                    match event.kind {
                        Kind::Named { thread, name } => names.push((event.time, thread, name)),
                        _ => times.push(event.time),
                    }
                }
                reading.give_back(events);
            }
        });
        assert!(times.iter().copied().eq(0..EVENTS));
        assert_eq!(names[..2], [(0, 7, Comm::new("first")), (EVENTS / 2, 7, Comm::new("second"))]);
        assert!(names[2..].iter().all(|(_, _, name)| *name == Comm::new("second")), "{names:?}");
    }

    #[test]
    fn ends_reader_thread_when_dropped() {
        thread_scope(|reading| assert!(reading.next().is_some()));
    }

    fn thread_scope(use_it: impl FnOnce(&Reading<'_>)) {
        let events = events();
        std::thread::scope(|scope| {
            let reading = Reading::start(scope, events).unwrap();
            use_it(&reading);
            assert!(reading.end().is_some());
        });
    }
}
