//! Virtual time that follows a simulator: it advances only as far as the topic `/clock` permits.
//!
//! The bridge's thread queues all messages of transports. The thread `punctual-clock`, which takes
//! turns with the partitions, passes them to their topics in the order of their arrival, and lets
//! time pass when it comes to a message on `/clock`.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual::background::warn;
use punctual::{Instant, RunningApp, VirtualThread};

use crate::Message;
use crate::message::{Description, Layout, decode};
use crate::messages::rosgraph_msgs::Clock as ClockMessage;
use crate::qos::Qos;
use crate::sink::Clock;
use crate::transport::{Receive, TransportServer};

/// The topic of simulators.
const TOPIC: &str = "/clock";
/// `ClockQoS` of rclcpp.
const QOS: Qos = Qos::SENSOR_DATA.depth(1);
/// The limit of the queued messages, in bytes, for an app that is slower than its simulator, or a
/// simulator that pauses. Further ones are rejected and counted.
const MAX_QUEUED_BYTES: usize = 16 << 20;
/// The interval at which the waiting thread checks whether the app is stopping.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A queued event.
enum Event {
    /// A message for the incoming topic with this index, and its sender.
    Message { topic: usize, bytes: Box<[u8]>, layout: Layout, sender: String },
    /// The simulated time in ns at a start or reset of the simulator.
    Start(u64),
    /// A later simulated time in ns.
    Time(u64),
}

impl Event {
    fn bytes(&self) -> usize {
        match self {
            Self::Message { bytes, sender, .. } => size_of::<Self>() + bytes.len() + sender.len(),
            Self::Start(_) | Self::Time(_) => size_of::<Self>(),
        }
    }
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    bytes: usize,
    /// The time of the last message on `/clock`.
    newest_ns: Option<u64>,
    /// The difference of simulated and virtual time, in ns modulo 2⁶⁴, until the bridge's thread
    /// adopts it.
    offset_ns: Option<u64>,
    /// The bridge's thread has ended.
    is_over: bool,
}

impl State {
    fn push(&mut self, event: Event) -> Result<(), ()> {
        let bytes = self.bytes + event.bytes();
        if bytes > MAX_QUEUED_BYTES {
            return Err(());
        }
        self.bytes = bytes;
        self.events.push_back(event);
        Ok(())
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message.
    fn push_message(&self, message: Event) -> Result<(), ()> {
        let mut state = self.lock();
        state.push(message)?;
        self.changed.notify_all();
        Ok(())
    }

    /// Queues a time.
    fn push_time(&self, now_ns: u64) -> Result<(), ()> {
        let mut state = self.lock();
        if state.newest_ns.is_none_or(|newest_ns| now_ns < newest_ns) {
            state.push(Event::Start(now_ns))?;
        } else if let Some(Event::Time(last_ns)) = state.events.back_mut() {
            // The jobs of the time in between run anyway.
            *last_ns = now_ns;
        } else {
            state.push(Event::Time(now_ns))?;
        }
        state.newest_ns = Some(now_ns);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for a value, for as long as the app and the bridge run.
    fn wait<T>(&self, thread: &VirtualThread, mut find: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(value) = find(&mut state) {
                return Some(value);
            }
            if state.is_over {
                return None;
            }
            if thread.is_stopping() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, CHECK_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The end of the bridge's thread. Dropping it stops the app, whose time would otherwise pass
/// freely.
pub(crate) struct Simulation(Arc<Shared>);

impl Simulation {
    /// Makes the virtual time of the present app follow `/clock`, which the transports of `server`
    /// carry.
    pub(crate) fn start(server: &mut TransportServer) -> Result<Self, String> {
        match RunningApp::current() {
            Some(app) if app.is_virtual() => {}
            Some(_) => return Err("the app does not run in virtual time; set PUNCTUAL_PORT=virtual".into()),
            None => return Err("start the bridge in `init`, whose thread belongs to the app".into()),
        }
        let simulation = Self(Arc::default());
        let topics = simulation.connect(server.incoming_mut())?;
        let shared = Arc::clone(&simulation.0);
        punctual::spawn_in_virtual_time("punctual-clock", move |thread| {
            follow(&shared, topics, thread);
            punctual::shutdown();
        })
        .map_err(|error| error.to_string())?;
        Ok(simulation)
    }

    /// Replaces the incoming topics by queues, adds `/clock`, and returns the topics.
    fn connect(&self, incoming: &mut Vec<Box<dyn Receive>>) -> Result<Vec<Box<dyn Receive>>, String> {
        if incoming.iter().any(|topic| topic.name() == TOPIC) {
            return Err(format!("the bridge itself subscribes to {TOPIC}; remove the app's subscription"));
        }
        let topics = std::mem::take(incoming);
        for (topic, of) in topics.iter().enumerate() {
            let (name, description, qos) = (of.name(), of.description(), of.qos());
            let shared = Arc::clone(&self.0);
            incoming.push(Box::new(Queue { shared, topic, name, description, qos }));
        }
        // Last, because each round takes the messages of one topic after the other.
        incoming.push(Box::new(ClockQueue(Arc::clone(&self.0))));
        Ok(topics)
    }

    /// Returns the clock for the messages that will be published, if it is to change. No job runs
    /// until it is [adopted](Self::adopted), after the messages before were carried.
    pub(crate) fn new_clock(&self) -> Option<Clock> {
        self.0.lock().offset_ns.map(Clock::of_virtual_time)
    }

    /// Lets the jobs run, by the new clock.
    pub(crate) fn adopted(&self) {
        self.0.lock().offset_ns = None;
        self.0.changed.notify_all();
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Passes messages and time to the app until one of them ends.
fn follow(shared: &Shared, mut topics: Vec<Box<dyn Receive>>, thread: &mut VirtualThread) {
    let mut simulated_ns: Option<u64> = None;
    loop {
        let next = shared.wait(thread, |state| {
            let event = state.events.pop_front()?;
            state.bytes -= event.bytes();
            Some(event)
        });
        match next {
            None => return,
            Some(Event::Message { topic, bytes, layout, sender }) => {
                // The topic counts and reports rejected messages.
                let _ = topics[topic].take(&bytes, layout, &sender);
            }
            Some(Event::Start(now_ns)) => {
                let virtual_ns = punctual::now().as_ticks();
                if let Some(before_ns) = simulated_ns {
                    warn(format_args!(
                        "{TOPIC}: the simulated time was reset from {:.3} s to {:.3} s; virtual time continues",
                        before_ns as f64 / 1e9,
                        now_ns as f64 / 1e9,
                    ));
                }
                // The instant of the jobs that have run last, or the start.
                let last_ns = virtual_ns.saturating_sub(1);
                shared.lock().offset_ns = Some(now_ns.wrapping_sub(last_ns));
                let is_adopted = |state: &mut State| state.offset_ns.is_none().then_some(());
                if shared.wait(thread, is_adopted).is_none() {
                    return;
                }
                // Those of the start.
                if simulated_ns.is_none() && !thread.sleep_until(Instant::from_ticks(1)) {
                    return;
                }
                simulated_ns = Some(now_ns);
            }
            Some(Event::Time(now_ns)) => {
                let passed_ns = simulated_ns.map_or(0, |before_ns| now_ns.saturating_sub(before_ns));
                // Includes the jobs that are released at this time.
                let end_ns = punctual::now().as_ticks().saturating_add(passed_ns);
                if !thread.sleep_until(Instant::from_ticks(end_ns)) {
                    return;
                }
                simulated_ns = Some(now_ns);
            }
        }
    }
}

/// An incoming topic whose messages are queued.
struct Queue {
    shared: Arc<Shared>,
    topic: usize,
    name: &'static str,
    description: &'static Description,
    qos: Qos,
}

impl Receive for Queue {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&self) -> &'static Description {
        self.description
    }

    fn qos(&self) -> Qos {
        self.qos
    }

    fn take(&mut self, bytes: &[u8], layout: Layout, sender: &str) -> Result<(), ()> {
        let (topic, bytes, sender) = (self.topic, bytes.into(), sender.to_owned());
        self.shared.push_message(Event::Message { topic, bytes, layout, sender })
    }
}

/// The topic of the simulated time.
struct ClockQueue(Arc<Shared>);

impl Receive for ClockQueue {
    fn name(&self) -> &'static str {
        TOPIC
    }

    fn description(&self) -> &'static Description {
        ClockMessage::DESCRIPTION
    }

    fn qos(&self) -> Qos {
        QOS
    }

    fn take(&mut self, bytes: &[u8], layout: Layout, _: &str) -> Result<(), ()> {
        let message: ClockMessage = decode(bytes, layout).map_err(drop)?;
        self.0.push_time(message.clock.to_ns().ok_or(())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the queued events as text, without messages.
    fn events(shared: &Shared) -> Vec<String> {
        let events = |state: &State| {
            let text = |event: &Event| match event {
                Event::Message { sender, .. } => format!("message of {sender}"),
                Event::Start(ns) => format!("start at {ns}"),
                Event::Time(ns) => format!("until {ns}"),
            };
            state.events.iter().map(text).collect()
        };
        events(&shared.lock())
    }

    fn message(length: usize) -> Event {
        let (bytes, sender) = (vec![0; length].into(), "ros2".to_owned());
        Event::Message { topic: 0, bytes, layout: Layout::Cdr, sender }
    }

    #[test]
    fn joins_only_later_times_without_messages_in_between() {
        let shared = Shared::default();
        for time in [5, 6, 7] {
            shared.push_time(time).unwrap();
        }
        shared.push_message(message(4)).unwrap();
        for time in [8, 2, 2, 4] {
            shared.push_time(time).unwrap();
        }
        let expected = ["start at 5", "until 7", "message of ros2", "until 8", "start at 2", "until 4"];
        assert_eq!(events(&shared), expected);
    }

    #[test]
    fn rejects_messages_beyond_the_limit() {
        let shared = Shared::default();
        shared.push_message(message(MAX_QUEUED_BYTES / 2)).unwrap();
        assert_eq!(shared.push_message(message(MAX_QUEUED_BYTES / 2)), Err(()));
        shared.push_time(1).unwrap();
        assert_eq!(events(&shared), ["message of ros2", "start at 1"]);
    }
}
