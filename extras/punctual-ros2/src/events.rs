//! The topic `/parameter_events`, on which nodes of ROS announce changes of their parameters.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use punctual_bridge::parameters::Parameter;
use punctual_transport::{Network, Notice};
use ros2_client::builtin_interfaces::Time;
use ros2_client::dds::{Node, Publisher};
use ros2_client::parameters::raw::{self, ParameterEvent};
use ros2_client::qos::{History, QosProfile};
use ros2_client::{MessageTypeName, Name};

use crate::node::{Ros2, service_qos, text};
use crate::parameters::Access;
use crate::values::value;

/// The interval at which changes are searched: by clients of ROS, and by `punctual set`.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum interval at which the parameters of an app that serves none are searched: each
/// search reads the kernel's list of sockets.
const MAX_SEARCH_INTERVAL: Duration = Duration::from_secs(16);
/// The depth of the topic in ROS.
const DEPTH: usize = 1000;

/// The publisher of a node.
pub(crate) type EventPublisher = Publisher<ParameterEvent>;

/// Creates the publisher of `node`.
///
/// # Errors
/// The error message.
pub(crate) fn publisher(node: &mut Node) -> Result<EventPublisher, String> {
    let qos = QosProfile { history: History::KeepLast { depth: DEPTH }, ..service_qos() };
    let name = Name::parse("/parameter_events").map_err(text)?;
    let kind = MessageTypeName::new("rcl_interfaces", "ParameterEvent");
    let topic = node.create_topic(&name, kind, &qos).map_err(text)?;
    node.create_publisher(&topic, Some(qos)).map_err(text)
}

/// The thread that publishes changes. Dropping it ends the thread.
pub(crate) struct Events {
    publishers: Option<Sender<EventPublisher>>,
    thread: Option<JoinHandle<()>>,
}

impl Events {
    /// Starts the thread for a node with this name and namespace.
    pub(crate) fn start(first: EventPublisher, access: Access, node: String) -> io::Result<Self> {
        let (publishers, newest) = channel();
        let thread = Builder::new().name("events".into()).spawn(move || publish(&newest, &access, &node))?;
        let events = Self { publishers: Some(publishers), thread: Some(thread) };
        events.renew(first);
        Ok(events)
    }

    /// Replaces the publisher.
    pub(crate) fn renew(&self, newest: EventPublisher) {
        if let Some(publishers) = &self.publishers {
            // An error: the thread has ended.
            let _ = publishers.send(newest);
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        drop(self.publishers.take());
        if let Some(thread) = self.thread.take() {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

/// Publishes changes on the newest publisher until there are no further ones.
fn publish(publishers: &Receiver<EventPublisher>, access: &Access, node: &str) {
    let (mut newest, mut known, mut notice) = (None, BTreeMap::new(), Notice::new(Ros2::NAME));
    let mut search = Search { interval: POLL_INTERVAL, due: Instant::now() };
    loop {
        match publishers.recv_timeout(POLL_INTERVAL) {
            Ok(publisher) => newest = Some(publisher),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(publisher) = &newest else { continue };
        let present = if search.is_due(access, Instant::now()) { access.list() } else { access.list_own() };
        let stamp = access.time.now_ns().map_or_else(Time::now, |ns| Time::from_nanos(ns.cast_signed()));
        if let Some(event) = event(&mut known, &present, node, stamp)
            && let Err(error) = publisher.publish(event)
        {
            notice.add(format_args!("parameters: an event cannot be sent: {error}"));
        }
    }
}

/// The search for the parameters of an app, which may serve them later, or not at all.
struct Search {
    interval: Duration,
    due: Instant,
}

impl Search {
    /// Returns `true` if the app's parameters are to be read. The intervals between searches
    /// double while none are found.
    fn is_due(&mut self, access: &Access, now: Instant) -> bool {
        if access.is_found() {
            return true;
        }
        let is_due = now >= self.due;
        if is_due {
            self.due = now + self.interval;
            self.interval = (self.interval * 2).min(MAX_SEARCH_INTERVAL);
        }
        is_due
    }
}

/// Returns the event that leads from the known values to the present ones, if they differ, and
/// remembers the present ones.
fn event(
    known: &mut BTreeMap<String, String>,
    present: &[Parameter],
    node: &str,
    stamp: Time,
) -> Option<ParameterEvent> {
    let describe = |parameter: &Parameter| raw::Parameter {
        name: parameter.name.clone(),
        value: value(parameter).into(),
    };
    let (mut new, mut changed) = (vec![], vec![]);
    for parameter in present {
        match known.insert(parameter.name.clone(), parameter.value.clone()) {
            None => new.push(describe(parameter)),
            Some(before) if before != parameter.value => changed.push(describe(parameter)),
            Some(_) => {}
        }
    }
    (!new.is_empty() || !changed.is_empty()).then(|| ParameterEvent {
        stamp,
        node: node.to_owned(),
        new_parameters: new,
        changed_parameters: changed,
        // Parameters of an app cannot be removed.
        deleted_parameters: vec![],
    })
}

#[cfg(test)]
mod tests {
    use punctual_bridge::Parameters;
    use punctual_bridge::parameters::list;

    use super::*;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        #[parameter(default = 1.0, range = 0.0..=4.0)]
        kp: f64,
        #[parameter(default = 8, range = 1..=64)]
        window: u16,
    }

    #[test]
    fn searches_less_often_while_app_serves_no_parameters() {
        let (access, begun) = (Access::new(0), Instant::now());
        let mut search = Search { interval: POLL_INTERVAL, due: begun };
        let seconds: Vec<f64> = (0..120)
            .map(|half| begun + POLL_INTERVAL * half)
            .filter(|now| search.is_due(&access, *now))
            .map(|now| now.duration_since(begun).as_secs_f64())
            .collect();
        assert_eq!(seconds, [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 47.5]);
    }

    #[test]
    fn events_contain_new_and_changed_parameters_once() {
        let mut known = BTreeMap::new();
        let names = |event: Option<ParameterEvent>| {
            let names = |all: Vec<raw::Parameter>| all.into_iter().map(|one| one.name).collect::<Vec<_>>();
            event.map(|event| (names(event.new_parameters), names(event.changed_parameters)))
        };
        let mut present = list(&Gains::DEFAULT);
        let both = || vec!["kp".to_owned(), "window".to_owned()];
        assert_eq!(names(event(&mut known, &present, "/node", Time::ZERO)), Some((both(), vec![])));
        assert_eq!(names(event(&mut known, &present, "/node", Time::ZERO)), None);
        present[1].value = "9".into();
        assert_eq!(
            names(event(&mut known, &present, "/node", Time::ZERO)),
            Some((vec![], vec!["window".to_owned()]))
        );
        assert_eq!(names(event(&mut known, &present, "/node", Time::ZERO)), None);
    }
}
