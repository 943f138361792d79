//! Attribution of time to actors.

use crate::event::Tid;

/// Anything that can occupy a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    /// A thread; 0 is the idle thread.
    Thread(Tid),
    /// A device interrupt handler.
    Irq(u32),
    /// An interrupt vector handler.
    Vector(u16),
    /// A softirq.
    Softirq(u8),
    /// A job that a Punctual app called on the same thread, by its task.
    Task(u16),
    /// No actor: a SCHED_DEADLINE thread had used up its runtime.
    Throttling,
    /// The actors with the smallest shares, if there were too many to list.
    Others,
    /// Unknown: events were lost, the stored history was too short, or it was a thread, perhaps the
    /// idle one, whose switches are not all recorded.
    Unseen,
}

/// Time taken by one actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// The actor.
    pub actor: Actor,
    /// Total time, in ns.
    pub ns: u64,
    /// Number of intervals.
    pub times: u32,
}

/// Maximum number of causes. The smallest of further ones are merged into [`Actor::Others`].
pub const MAX_CAUSES: usize = 16;

/// Adds time to an actor in a list of causes.
pub(crate) fn blame(causes: &mut Vec<Cause>, actor: Actor, ns: u64) {
    if ns == 0 {
        return;
    }
    // Searched from the end, because the latest actor is the most likely to recur.
    if let Some(cause) = causes.iter_mut().rev().find(|cause| cause.actor == actor) {
        cause.ns += ns;
        cause.times += 1;
        return;
    }
    if causes.len() >= MAX_CAUSES {
        merge_smallest(causes);
    }
    causes.push(Cause { actor, ns, times: 1 });
}

/// Adds the smallest share to that of [`Actor::Others`].
#[cold]
fn merge_smallest(causes: &mut Vec<Cause>) {
    let least = causes.iter().enumerate().filter(|(_, c)| c.actor != Actor::Others).min_by_key(|(_, c)| c.ns);
    if let Some((index, _)) = least {
        let Cause { ns, times, .. } = causes.swap_remove(index);
        match causes.iter_mut().find(|cause| cause.actor == Actor::Others) {
            Some(others) => {
                others.ns += ns;
                others.times += times;
            }
            None => causes.push(Cause { actor: Actor::Others, ns, times }),
        }
    }
}
