//! Who took the time.

use crate::event::Tid;

/// Whoever can occupy a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Actor {
    /// A thread; 0 is the idle thread.
    Thread(Tid),
    /// The handler of a device interrupt.
    Irq(u32),
    /// The handler of an interrupt vector.
    Vector(u16),
    /// A softirq.
    Softirq(u8),
    /// A job that a Punctual app called on the same thread, by its task.
    Task(u16),
    /// Nobody: a SCHED_DEADLINE thread had used up its runtime.
    Throttling,
    /// Those with the smallest shares, if there were too many to list.
    Others,
    /// The analysis does not know: events were lost, the history it keeps was too short, or it was a thread, perhaps the idle
    /// one, whose switches are not all recorded.
    Unseen,
}

/// How long somebody took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// Who.
    pub actor: Actor,
    /// How long, in ns.
    pub ns: u64,
    /// In how many intervals.
    pub times: u32,
}

/// How many causes are listed. Beyond that, the smallest are merged into [`Actor::Others`].
pub const MAX_CAUSES: usize = 16;

/// Adds to a list of causes.
pub(crate) fn blame(causes: &mut Vec<Cause>, actor: Actor, ns: u64) {
    if ns == 0 {
        return;
    }
    // The last one blamed is the most likely to be blamed again.
    if let Some(cause) = causes.iter_mut().rev().find(|cause| cause.actor == actor) {
        cause.ns += ns;
        cause.times += 1;
        return;
    }
    if causes.len() >= MAX_CAUSES {
        let least =
            causes.iter().enumerate().filter(|(_, c)| c.actor != Actor::Others).min_by_key(|(_, c)| c.ns);
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
    causes.push(Cause { actor, ns, times: 1 });
}
