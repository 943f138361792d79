//! Locks of apps with `profile`.

use punctual_core::Mutex;

use super::job::{Reading, gives_up_one, has_got_one, holds_any, running, waited};
use super::task::TaskProfile;
use crate::model::Protocol;

/// A lock right whose critical sections are measured while the app is profiled.
#[derive(Debug)]
pub struct Profiled<L> {
    lock: L,
    resource: &'static str,
}

impl<L> Profiled<L> {
    /// Creates the right to lock the resource with this name.
    #[inline(always)]
    pub const fn new(lock: L, resource: &'static str) -> Self {
        Self { lock, resource }
    }
}

impl<L: Mutex> Mutex for Profiled<L> {
    type T = L::T;

    #[inline(always)]
    fn lock<R>(&mut self, f: impl FnOnce(&mut L::T) -> R) -> R {
        let Self { lock, resource } = self;
        let wanted = running().map(|job| Wanted::new(job, resource));
        lock.lock(|value| {
            let held = wanted.map(Wanted::has);
            let result = f(value);
            if let Some(held) = held {
                held.gives_up();
            }
            result
        })
    }
}

/// A resource that the current job of this thread is about to lock.
struct Wanted {
    job: &'static TaskProfile,
    /// Its index among the app's resources, and the start of the wait, if it may have to wait.
    resource: usize,
    since: Option<Reading>,
}

/// A held resource.
struct Held {
    job: &'static TaskProfile,
    resource: usize,
    since: Reading,
    /// True if the job held another resource at the request.
    nested: bool,
}

impl Wanted {
    #[cold]
    fn new(job: &'static TaskProfile, name: &str) -> Self {
        let resources = job.partition.runtime.host.model.resources;
        let resource = resources.iter().position(|known| known.name == name).unwrap_or(resources.len());
        let protocol = resources.get(resource).map(|resource| resource.protocol);
        let waits = matches!(protocol, Some(Protocol::Msrp | Protocol::Pcp));
        Self { job, resource, since: waits.then(|| Reading::now(job.partition)) }
    }

    #[cold]
    fn has(self) -> Held {
        let Self { job, resource, since: waits_since } = self;
        let since = Reading::now(job.partition);
        if let Some(before) = waits_since {
            let (gross, others) = since.since(before);
            waited(gross.saturating_sub(others));
        }
        let nested = holds_any();
        has_got_one();
        Held { job, resource, since, nested }
    }
}

impl Held {
    #[cold]
    fn gives_up(self) {
        gives_up_one();
        // SAFETY: it is the job that runs on this thread, as before: the jobs called in between
        // have ended.
        unsafe { self.job.held(self.resource, self.since, self.nested) };
    }
}
