//! Parameters: declared once, read by tasks as a snapshot, changed from outside while the app runs.
//!
//! ```
//! use punctual_bridge::{Parameters, Tunable, Tuning};
//!
//! #[derive(Clone, Copy, Parameters)]
//! struct Gains {
//!     #[parameter(default = 1.2, range = 0.0..=10.0, unit = "A/rad")]
//!     kp: f64,
//!     #[parameter(default = true)]
//!     enabled: bool,
//! }
//!
//! static GAINS: Tunable<Gains> = Tunable::new();
//!
//! let mut gains = GAINS.reader().expect("the reader is free");
//! // In `init`. From now on: punctual set demo kp=1.5
//! let server = Tuning::new(&GAINS).start("demo")?;
//! assert_eq!(gains.read().value.kp, 1.2);
//!
//! // The program itself uses the same interface.
//! server.set(&[("kp", "1.5")]).expect("it is within its range");
//! assert_eq!(gains.read().value.kp, 1.5);
//! let refused = server.set(&[("kp", "2.5"), ("kq", "NaN")]).unwrap_err();
//! assert_eq!(refused.to_string(), "there is no parameter kq; there are kp, enabled");
//! assert_eq!(gains.read().value.kp, 1.5, "all or none");
//! # Ok::<(), punctual_bridge::parameters::StartError>(())
//! ```
//!
//! # Access
//!
//! No process outside of the app writes the memory that tasks read. A request arrives over a socket
//! at an ordinary thread of the app, which authenticates the sender, parses every value, checks its
//! range, calls the program's [check](Tuning::check) for the whole set, and only then publishes a
//! new snapshot. So no other process can corrupt the values, a request with a single error changes
//! nothing, and tasks keep the previous values.
//!
//! # Cost for a task
//!
//! [`TunableReader::read`] copies the struct; it is wait-free and neither allocates nor enters the
//! kernel ([`Latest`](punctual_sync::shared::Latest)).

mod cell;
mod connections;
mod file;
mod number;
mod protocol;
mod remote;
mod server;
mod tuning;

use std::collections::HashMap;
use std::fmt;

use crate::Message;

pub use cell::{Tunable, TunableReader};
pub use file::{FileError, assignments};
pub use number::Number;
pub use remote::{Remote, Remotes, RequestError};
pub use server::{StartError, TuningReport, TuningServer};
pub use tuning::Tuning;

/// A struct of parameters: implemented by [`derive(Parameters)`](punctual_macros::Parameters),
/// which also makes it a [`Message`].
///
/// ```
/// use punctual_bridge::Parameters;
///
/// const MAX_CURRENT: f32 = 2.5;
///
/// /// Named `my_crate/msg/Axis` in recordings, after the crate, unless `#[message(name = "..")]` is given.
/// #[derive(Clone, Copy, Parameters)]
/// struct Axis {
///     #[parameter(default = 1.2, range = 0.0..=10.0, unit = "A/rad")]
///     kp: f64,
///     #[parameter(default = MAX_CURRENT, range = 0.1..=MAX_CURRENT, unit = "A")]
///     limit: f32,
/// }
///
/// /// Its parameters are `pan.kp`, `pan.limit`, `tilt.kp`, `tilt.limit`, `window` and `enabled`.
/// #[derive(Clone, Copy, Parameters)]
/// struct Gimbal {
///     #[parameter(nested)]
///     pan: Axis,
///     #[parameter(nested)]
///     tilt: Axis,
///     #[parameter(default = 8, range = 1..=64)]
///     window: u16,
///     #[parameter(default = true)]
///     enabled: bool,
/// }
/// assert_eq!(Gimbal::DEFAULT.tilt.limit, 2.5);
/// ```
///
/// Each is a number with a range, or a `bool`. A default outside of its range does not compile:
///
/// ```compile_fail
/// use punctual_bridge::Parameters;
///
/// #[derive(Clone, Copy, Parameters)]
/// struct Gains {
///     #[parameter(default = 12.0, range = 0.0..=10.0)]
///     kp: f64,
/// }
/// ```
pub trait Parameters: Message {
    /// The default of every parameter.
    const DEFAULT: Self;

    /// Passes each parameter to the visitor, in declaration order.
    fn visit(&mut self, visitor: &mut Visitor<'_>);
}

/// A parameter and its value, as texts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// The name, with the names of its groups as a prefix: `pan.kp`.
    pub name: String,
    /// The name of the type: `f64`.
    pub kind: String,
    /// The unit, if any.
    pub unit: Option<String>,
    /// The smallest and the largest value; `None` for a `bool`.
    pub range: Option<(String, String)>,
    /// The default.
    pub default: String,
    /// The value.
    pub value: String,
}

/// A changed value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The name of the parameter.
    pub name: String,
    /// The value before.
    pub before: String,
    /// The new value.
    pub now: String,
}

/// The reasons for a refused change, a sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub Vec<String>);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Refused {}

/// Visits the parameters of a struct.
pub struct Visitor<'a> {
    /// The names of the groups, each followed by a dot.
    path: String,
    each: &'a mut dyn FnMut(String, &mut dyn Declared),
}

impl<'a> Visitor<'a> {
    fn new(each: &'a mut dyn FnMut(String, &mut dyn Declared)) -> Self {
        Self { path: String::new(), each }
    }

    /// Visits a parameter, with its declaration.
    pub fn parameter<T: Number>(
        &mut self,
        name: &str,
        unit: Option<&'static str>,
        default: T,
        range: Option<(T, T)>,
        value: &mut T,
    ) {
        (self.each)(format!("{}{name}", self.path), &mut OfType { unit, default, range, value });
    }

    /// Visits the parameters of a nested struct.
    pub fn group(&mut self, name: &str, group: &mut impl Parameters) {
        let length = self.path.len();
        self.path.push_str(name);
        self.path.push('.');
        group.visit(self);
        self.path.truncate(length);
    }
}

impl fmt::Debug for Visitor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A parameter of any type.
trait Declared {
    fn describe(&self, name: String) -> Parameter;

    /// Sets the parsed value of a text, if it is permitted.
    fn set(&mut self, text: &str) -> Result<(), String>;
}

struct OfType<'v, T> {
    unit: Option<&'static str>,
    default: T,
    range: Option<(T, T)>,
    value: &'v mut T,
}

impl<T: Number> Declared for OfType<'_, T> {
    fn describe(&self, name: String) -> Parameter {
        Parameter {
            name,
            kind: T::TYPE.to_owned(),
            unit: self.unit.map(str::to_owned),
            range: self.range.map(|(min, max)| (min.text(), max.text())),
            default: self.default.text(),
            value: self.value.text(),
        }
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        let unit = self.unit.map_or_else(String::new, |unit| format!(" {unit}"));
        let within = self.range.map(|(min, max)| format!("{} to {}{unit}", min.text(), max.text()));
        let excerpt = Excerpt(text);
        let value = T::read(text).map_err(|why| match &within {
            Some(within) => format!("{excerpt:?} {why}; it takes {within}"),
            None => format!("{excerpt:?} {why}"),
        })?;
        if let Some((min, max)) = self.range
            && !(min <= value && value <= max)
        {
            return Err(format!("{excerpt}{unit} is out of range; it takes {}", within.unwrap_or_default()));
        }
        *self.value = value;
        Ok(())
    }
}

/// Returns all parameters with their values in `parameters`.
pub fn list<P: Parameters>(parameters: &P) -> Vec<Parameter> {
    let mut list = Vec::new();
    let mut copy = *parameters;
    copy.visit(&mut Visitor::new(&mut |name, parameter| list.push(parameter.describe(name))));
    list
}

/// Returns `parameters` with these assignments, each consisting of a name and a value as text.
///
/// ```
/// use punctual_bridge::{Parameters, parameters};
///
/// #[derive(Debug, Clone, Copy, Parameters)]
/// struct Gains {
///     #[parameter(default = 1.2, range = 0.0..=10.0, unit = "A/rad")]
///     kp: f64,
/// }
/// let refused = parameters::assign(&Gains::DEFAULT, &[("kp", "12")]).unwrap_err();
/// assert_eq!(refused.to_string(), "kp: 12 A/rad is out of range; it takes 0.0 to 10.0 A/rad");
/// ```
///
/// # Errors
/// [`Refused`] if any assignment is invalid, with up to a hundred reasons.
pub fn assign<P: Parameters, N: AsRef<str>, V: AsRef<str>>(
    parameters: &P,
    assignments: &[(N, V)],
) -> Result<P, Refused> {
    // Indexed by name, so that the time is linear in the number of assignments, which may come from
    // another process.
    let mut given: HashMap<&str, (&str, usize)> = HashMap::new();
    for (name, value) in assignments {
        given.entry(name.as_ref()).or_insert((value.as_ref(), 0)).1 += 1;
    }
    let mut changed = *parameters;
    let mut reasons = Reasons::default();
    let mut known = Vec::new();
    changed.visit(&mut Visitor::new(&mut |name, parameter| {
        match given.remove(name.as_str()) {
            Some((value, 1)) => {
                if let Err(why) = parameter.set(value.trim()) {
                    reasons.add(|| format!("{name}: {why}"));
                }
            }
            Some(_) => reasons.add(|| format!("{name} is given more than once")),
            None => {}
        }
        known.push(name);
    }));
    if !given.is_empty() {
        // In request order.
        for name in assignments.iter().map(|(name, _)| name.as_ref()) {
            if given.remove(name).is_some() {
                reasons.add(|| {
                    format!("there is no parameter {}; there are {}", Excerpt(name), known.join(", "))
                });
            }
        }
    }
    if assignments.is_empty() {
        reasons.add(|| format!("nothing is given; there are {}", known.join(", ")));
    }
    reasons.none().map(|()| changed)
}

/// The maximum number of reasons in a refusal.
const MAX_REASONS: usize = 100;

/// The reasons of a refusal: the first ones, and the number of others.
#[derive(Default)]
struct Reasons {
    first: Vec<String>,
    others: usize,
}

impl Reasons {
    fn add(&mut self, reason: impl FnOnce() -> String) {
        match self.first.len() < MAX_REASONS {
            true => self.first.push(reason()),
            false => self.others += 1,
        }
    }

    /// Fails if there is a reason.
    fn none(mut self) -> Result<(), Refused> {
        if self.others > 0 {
            self.first.push(format!("{} more reasons", self.others));
        }
        if self.first.is_empty() { Ok(()) } else { Err(Refused(self.first)) }
    }
}

/// The beginning of a text from another process, for use in messages.
struct Excerpt<'a>(&'a str);

impl Excerpt<'_> {
    /// The maximum length, in characters.
    const MAX: usize = 80;
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(Self::MAX) {
            Some((end, _)) => write!(f, "{}…", &self.0[..end]),
            None => f.write_str(self.0),
        }
    }
}

impl fmt::Debug for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

/// Returns the differences.
fn changes<P: Parameters>(before: &P, now: &P) -> Vec<Change> {
    let pairs = list(before).into_iter().zip(list(now));
    let changed = pairs.filter(|(before, now)| before.value != now.value);
    changed.map(|(before, now)| Change { name: now.name, before: before.value, now: now.value }).collect()
}

#[cfg(test)]
mod tests;
