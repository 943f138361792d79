//! A run in virtual time: everything on the calling thread.

use punctual_core::Instant;

use super::{App, StartError};
use crate::current::Member;
use crate::linux::reactor::Opened;
use crate::report::{Report, Settings};
use crate::runtime::{Runtime, Taken};
use crate::{Config, virtual_time};

pub(super) fn run<A: App>(
    runtime: &'static Runtime,
    config: &Config,
    app: A,
    taken: &Taken,
) -> Result<Report, StartError> {
    let (partition, me) = (&runtime.partition, runtime.idle);
    let system =
        |error: rustix::io::Errno| StartError::System { attempt: "making an epoll set", error: error.into() };
    let _opened = Opened::new(runtime, false).map_err(system)?;
    me.enter(0, false);
    me.allow_calls(true);
    // Until the end: the hook is a part of the app, with its clock.
    let _member = Member::join(runtime, me);

    partition.hold_everything(me);
    // SAFETY: everything is held, and a taken app has no resources filled.
    let mut kept = unsafe { super::init(runtime, app) };
    let start = Instant::from_ticks(0);
    runtime.set_started(start);
    runtime.partition.port().set_limit(config.until.map(|until| start + until));
    if let Some(kept) = &mut kept {
        // SAFETY: the resources are filled and no job runs.
        runtime.sources().for_each(|source| unsafe { source.refresh() });
        virtual_time::start(runtime, me);
        // SAFETY: the resources are filled, and this is the idle thread.
        unsafe { super::idle::<A>(runtime, kept) };
        while !partition.is_stopping() {
            virtual_time::step(runtime, me);
        }
        // Jobs released before the stop are finished.
        partition.serve(me, None);
    } else {
        partition.abandon(me);
    }
    // SAFETY: there was no other thread.
    Ok(unsafe { super::finish::<A>(runtime, taken, kept.is_some(), true, Settings::default()) })
}
