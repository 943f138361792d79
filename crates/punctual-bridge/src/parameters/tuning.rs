//! Checking and applying changes.

use std::fmt;
use std::path::Path;
use std::sync::Mutex;

use punctual_sync::Taken;

use super::cell::TunableWriter;
use super::server::{self, StartError, TuningReport, TuningServer};
use super::{Change, FileError, Parameters, Refused, Tunable, assign, assignments, changes};
use crate::Topic;
use crate::contained;
use crate::local::is_name;
use crate::message::{Description, Layout, decode};
use crate::replay::Input;

type Connect<T> = Box<dyn FnOnce() -> Result<T, Taken>>;
type Record<P> = Box<dyn FnMut(P) + Send>;
type Check<P> = Box<dyn Fn(&P) -> Result<(), String> + Send>;

/// Parameters and the rules for changing them, before they are served.
///
/// ```no_run
/// # use punctual_bridge::{Parameters, Topic, Tunable, Tuning};
/// # #[derive(Clone, Copy, Parameters)]
/// # struct Gains {
/// #     #[parameter(default = 0.0, range = -10.0..=10.0)]
/// #     low: f64,
/// #     #[parameter(default = 1.0, range = -10.0..=10.0)]
/// #     high: f64,
/// # }
/// static GAINS: Tunable<Gains> = Tunable::new();
/// /// Recorded by a `Bridge`.
/// static CHANGES: Topic<Gains, 16> = Topic::new("/gains");
///
/// let server = Tuning::new(&GAINS)
///     .check(|gains| if gains.low < gains.high { Ok(()) } else { Err("low has to be below high".into()) })
///     .file("gains.toml")?
///     .record(&CHANGES)
///     .start("my-app")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is served before it is started"]
pub struct Tuning<P: Parameters> {
    now: P,
    connect: Connect<TunableWriter<P>>,
    record: Option<(&'static str, Connect<Record<P>>)>,
    check: Option<Check<P>>,
}

impl<P: Parameters> Tuning<P> {
    /// Creates a set with every parameter at its default.
    pub fn new<const READERS: usize>(tunable: &'static Tunable<P, READERS>) -> Self {
        Self { now: P::DEFAULT, connect: Box::new(|| tunable.writer()), record: None, check: None }
    }

    /// Sets a check of every set of values before it is published, for rules that ranges cannot
    /// express. Its error is returned to the requester of the change.
    ///
    /// It runs on the server's thread, or on that of the caller of [`TuningServer::set`]. A panic
    /// refuses the change.
    pub fn check(mut self, check: impl Fn(&P) -> Result<(), String> + Send + 'static) -> Self {
        self.check = Some(Box::new(check));
        self
    }

    /// Starts with the values of a TOML file: `pan.kp = 1.2`, or `kp = 1.2` below `[pan]`.
    /// `punctual get APP --toml` prints one.
    ///
    /// # Errors
    /// [`FileError`] if the file cannot be read or any of its values is refused. If the
    /// [check](Self::check) refuses them, [`start`](Self::start) fails.
    pub fn file(mut self, path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let given = assignments(path)?;
        if !given.is_empty() {
            let refused = |refused| FileError::Refused { path: path.into(), refused };
            self.now = assign(&self.now, &given).map_err(refused)?;
        }
        Ok(self)
    }

    /// Publishes the initial values, and those after each change, as messages of a topic, for
    /// recordings. A [replay](crate::is_replay) sets the recorded values at the recorded times.
    pub fn record<const N: usize>(mut self, topic: &'static Topic<P, N>) -> Self {
        let connect: Connect<Record<P>> = Box::new(|| {
            let mut publisher = topic.publisher()?;
            Ok(Box::new(move |parameters| publisher.publish(punctual::now(), parameters)))
        });
        self.record = Some((topic.name(), connect));
        self
    }

    /// Publishes the values, and serves them under this name: by an ordinary thread, off the CPUs
    /// of the partitions if the machine has others and the app has been started. Therefore call it
    /// in `init`.
    ///
    /// # Errors
    /// See [`StartError`]; in that case nothing has been published.
    pub fn start(self, name: &str) -> Result<TuningServer<P>, StartError> {
        is_name(name).then_some(()).ok_or_else(|| StartError::Name(name.into()))?;
        checked(self.check.as_ref(), &self.now).map_err(StartError::Refused)?;
        let writer = (self.connect)().map_err(|Taken| StartError::Taken)?;
        let topic = self.record.as_ref().map(|(topic, _)| *topic);
        let record = self.record.map(|(_, connect)| connect()).transpose();
        let record = record.map_err(|Taken| StartError::TopicTaken)?;
        let counts = TuningReport::default();
        let store = Store { now: self.now, writer, record, check: self.check, counts };
        server::start(name, topic, store)
    }
}

impl<P: Parameters> fmt::Debug for Tuning<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuning = f.debug_struct("Tuning");
        tuning.field("is_recorded", &self.record.is_some()).field("is_checked", &self.check.is_some());
        tuning.finish_non_exhaustive()
    }
}

/// The values and the actions on a change.
pub(super) struct Store<P: Parameters> {
    pub(super) now: P,
    writer: TunableWriter<P>,
    record: Option<Record<P>>,
    check: Option<Check<P>>,
    pub(super) counts: TuningReport,
}

impl<P: Parameters> Store<P> {
    /// Publishes the present values to the tasks.
    pub(super) fn publish(&mut self) {
        self.writer.write(self.now);
        if let Some(record) = &mut self.record {
            record(self.now);
        }
    }

    /// Makes all of these assignments, or none.
    pub(super) fn set<N: AsRef<str>, V: AsRef<str>>(
        &mut self,
        assignments: &[(N, V)],
    ) -> Result<Vec<Change>, Refused> {
        let wanted = assign(&self.now, assignments)
            .and_then(|wanted| checked(self.check.as_ref(), &wanted).map(|()| wanted));
        let wanted = wanted.inspect_err(|_| self.counts.refused += 1)?;
        let changes = changes(&self.now, &wanted);
        self.counts.accepted += 1;
        // Unchanged values are not published as new ones.
        if !changes.is_empty() {
            self.now = wanted;
            self.publish();
        }
        Ok(changes)
    }
}

impl<P: Parameters> Input for Mutex<Store<P>> {
    fn description(&self) -> &'static Description {
        P::DESCRIPTION
    }

    fn feed(&self, payload: &[u8]) -> Result<(), String> {
        let wanted: P = decode(payload, Layout::Cdr).map_err(|error| error.to_string())?;
        let mut store = server::lock(self);
        checked(store.check.as_ref(), &wanted).map_err(|refused| refused.to_string())?;
        if !changes(&store.now, &wanted).is_empty() {
            store.now = wanted;
            store.publish();
        }
        Ok(())
    }
}

fn checked<P>(check: Option<&Check<P>>, parameters: &P) -> Result<(), Refused> {
    let Some(check) = check else { return Ok(()) };
    let checked = contained(|| check(parameters));
    let reason = checked.map_or_else(|| Some("the app's check panicked".to_owned()), Result::err);
    reason.map_or(Ok(()), |reason| Err(Refused(vec![reason])))
}
