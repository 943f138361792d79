//! Compares a handwritten task set with a measured run: the parameters that a job exceeded, and the
//! bounds with corrected parameters.
//!
//! A response above its bound refutes the model: a parameter is too small, or a term is missing.
//! Each exceeded parameter is corrected separately and the bound is recomputed, which attributes a
//! part of the difference to it.

use punctual_report::format::format_part;

use super::Source;
use super::file::{PROFILES, Profile, ProfilePartition, ProfileTask};
use crate::analyze::{analyze, of_run};
use crate::arrival::Stream;
use crate::bound::Analysis;
use crate::schema::{self, InputError, Problem, Step};
use crate::system::{Interrupt, Nesting, Observed, Section, Spawn, Suspension, System};
use crate::time::{MAX_TIME, Nanos};

/// Parameters of a model that a run exceeded.
#[derive(Default)]
pub struct Comparison {
    excesses: Vec<Excess>,
}

struct Excess {
    /// Measured value and model value.
    sentence: String,
    /// Assigns the measured value to the model.
    correct: Box<dyn Fn(&mut System)>,
}

/// Compares a task set with the profile of a run, and adds the observations to its tasks.
///
/// # Errors
/// Returns the defect of the profile, or the tasks that it lacks.
#[inline]
pub fn compare(system: &mut System, profile: Source<'_>) -> Result<Comparison, InputError> {
    let measured: Profile = schema::parse_json(profile.file, profile.text, &PROFILES)?;
    let lacks =
        |name: &str| !measured.tasks.iter().any(|it| it.name == name && it.execution_max_ns.is_some());
    if let Some(missing) = system.tasks.iter().find(|task| lacks(&task.name)) {
        let what = format!("no job of `{}` was measured", missing.name);
        let fix =
            "name the tasks of the set as in the source, and profile a run in which all of them have jobs";
        let problem = Problem::new(&[Step::Key("tasks")], what, fix);
        return Err(problem.at(profile.file, schema::line_in_json(profile.text, &[Step::Key("tasks")])));
    }
    let mut comparison = Comparison::default();
    let known: Vec<String> = system.tasks.iter().map(|task| task.name.clone()).collect();
    let mut outside = vec![0; system.partitions.len()];
    for (at, name) in known.iter().enumerate() {
        let Some(seen) = measured.tasks.iter().find(|it| it.name == *name) else { continue };
        comparison.task(system, at, seen, &known);
        let task = &mut system.tasks[at];
        task.observed =
            Observed { response: seen.response_max_ns, jobs: seen.jobs, misses: seen.deadline_misses };
        outside[task.partition] = outside[task.partition].max(seen.outside().unwrap_or(0));
    }
    for (at, outside) in outside.into_iter().enumerate() {
        let partition = &system.partitions[at];
        let found = measured.partitions.iter().find(|it| it.name == partition.name);
        // A task set need not name its only partition.
        let only = || measured.partitions.first().filter(|_| system.partitions.len() == 1);
        if let Some(seen) = found.or_else(only) {
            comparison.partition(system, at, seen);
            system.partitions[at].profiling = seen.profiling();
        }
        let run = measured.duration_ns.unwrap_or(MAX_TIME).clamp(1, MAX_TIME);
        comparison.machine(system, at, outside.min(MAX_TIME), run);
    }
    Ok(comparison)
}

impl Comparison {
    fn add(&mut self, sentence: String, correct: impl Fn(&mut System) + 'static) {
        self.excesses.push(Excess { sentence, correct: Box::new(correct) });
    }

    /// Adds an excess, if there is one.
    fn exceed(
        &mut self,
        what: impl FnOnce() -> String,
        (seen, has): (Option<Nanos>, Nanos),
        set: impl Fn(&mut System, Nanos) + 'static,
    ) {
        if let Some(seen) = seen.filter(|&seen| seen > has) {
            let seen = seen.min(MAX_TIME);
            let sentence =
                format!("{} {}, and the model has {}", what(), format_part(seen), format_part(has));
            self.add(sentence, move |system| set(system, seen));
        }
    }

    fn task(&mut self, system: &System, at: usize, seen: &ProfileTask, known: &[String]) {
        let task = &system.tasks[at];
        let name = &task.name;
        self.exceed(
            || format!("C: a job of `{name}` executed for"),
            (seen.execution(), task.execution),
            move |it, value| it.tasks[at].execution = value,
        );
        self.exceed(
            || format!("J: `{name}` was released late by"),
            (Some(seen.lateness(task.is_periodic)), task.jitter),
            move |it, value| it.tasks[at].jitter = value,
        );
        self.exceed(
            || format!("C: a job of `{name}` waited for"),
            (seen.suspension_max_ns, task.suspension.map_or(0, |it| it.total)),
            move |it, total| {
                let times = it.tasks[at].suspension.map_or(1, |it| it.times);
                it.tasks[at].suspension = Some(Suspension { total, times });
            },
        );
        for hold in seen.holds() {
            let Some(resource) = system.resources.iter().position(|it| it.name == hold.resource) else {
                // No other entry of the model contains it.
                continue;
            };
            let place = task.sections.iter().position(|it| it.resource == resource && it.times > 0);
            let has = place.map_or(0, |place| task.sections[place].hold);
            self.exceed(
                || format!("B: `{name}` held `{}` for", hold.resource),
                (hold.longest_ns, has),
                move |it, hold| match place {
                    Some(place) => it.tasks[at].sections[place].hold = hold,
                    None => {
                        let nesting = Nesting::Unknown;
                        it.tasks[at].sections.push(Section { resource, hold, times: 1, nesting });
                        it.update_ceilings();
                    }
                },
            );
        }
        for spawn in seen.spawns() {
            let Some(callee) = known.iter().position(|it| *it == spawn.task) else { continue };
            // A task with independent releases declares them, regardless of its callers.
            let is_declared = system.tasks[callee].arrivals.is_some();
            let has = task.spawns.iter().filter(|it| it.task == callee).map(|it| it.most).sum::<u64>();
            if !is_declared && spawn.most_per_job > has {
                let most = spawn.most_per_job;
                let what = format!(
                    "I: a job of `{name}` spawned `{}` {most} times, and the model has {has}",
                    spawn.task
                );
                self.add(what, move |it| {
                    let spawns = &mut it.tasks[at].spawns;
                    spawns.retain(|it| it.task != callee);
                    spawns.push(Spawn { task: callee, most, earliest: 0, in_section: true });
                });
            }
        }
        let Some(arrivals) = task.arrivals.as_ref().filter(|_| !task.is_periodic) else { return };
        let closer = seen.inter_arrival.iter().find_map(|it| {
            let (least, has) = (it.least_ns?, arrivals.distance(it.releases)?);
            (least < has).then_some((it.releases, least, has))
        });
        if let (Some((releases, least, has)), Some(stream)) =
            (closer, super::combine::observed_stream(&seen.inter_arrival))
        {
            let (least, has) = (format_part(least), format_part(has));
            let what =
                format!("I: `{name}` was released {releases} times within {least}, and the model has {has}");
            self.add(what, move |it| it.tasks[at].arrivals = Some(stream.clone()));
        }
    }

    /// Compares the executor's overheads.
    fn partition(&mut self, system: &System, at: usize, seen: &ProfilePartition) {
        let has = system.partitions[at].overheads;
        self.exceed(
            || "SS: a release costs".into(),
            (seen.release_ns, has.release),
            move |it, value| it.partitions[at].overheads.release = value,
        );
        self.exceed(
            || "SS: starting and ending a job costs".into(),
            (seen.dispatch_ns, has.dispatch),
            move |it, value| it.partitions[at].overheads.dispatch = value,
        );
        self.exceed(
            || "SS: locking costs".into(),
            (seen.lock_ns, has.lock),
            move |it, value| it.partitions[at].overheads.lock = value,
        );
        self.exceed(
            || "SS: a preemption costs".into(),
            (seen.preemption_ns, has.preemption),
            move |it, value| it.partitions[at].overheads.preemption = value,
        );
    }

    /// Compares the time that interrupts and the rest of the machine took from a job.
    fn machine(&mut self, system: &System, at: usize, outside: Nanos, run: Nanos) {
        let of = system.interrupts.iter().filter(|it| it.partition == at);
        let has = of.map(|it| it.execution).fold(0, Nanos::saturating_add);
        self.exceed(
            || "I: the rest of the machine took from a job".into(),
            (Some(outside), has),
            move |it, execution| {
                it.interrupts.push(Interrupt {
                    name: super::THE_REST.into(),
                    partition: at,
                    execution,
                    arrivals: Stream::sporadic(run),
                });
            },
        );
    }

    /// Returns whether no job exceeded a parameter.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.excesses.is_empty()
    }

    /// Lists the exceeded parameters, and for each task that exceeded its bound those that explain
    /// it.
    #[must_use]
    pub fn sentences(&self, system: &System, analysis: &Analysis) -> Vec<String> {
        let corrected = |excesses: &mut dyn Iterator<Item = &Excess>| {
            let mut system = system.clone();
            excesses.for_each(|excess| (excess.correct)(&mut system));
            of_run(&system, &analyze(&system))
        };
        let bounds = of_run(system, analysis);
        let alone: Vec<Vec<Option<Nanos>>> =
            self.excesses.iter().map(|excess| corrected(&mut std::iter::once(excess))).collect();
        let all = corrected(&mut self.excesses.iter());
        let mut sentences = Vec::new();
        for (at, task) in system.tasks.iter().enumerate() {
            let (Some(seen), Some(bound)) = (task.observed.response, bounds[at]) else {
                continue;
            };
            if seen <= bound {
                continue;
            }
            let mut causes: Vec<(Nanos, &str)> = Vec::new();
            for (excess, alone) in self.excesses.iter().zip(&alone) {
                let more = alone[at].unwrap_or(Nanos::MAX).saturating_sub(bound);
                if more > 0 {
                    causes.push((more, &excess.sentence));
                }
            }
            causes.sort_by_key(|&(more, _)| std::cmp::Reverse(more));
            sentences.push(format!(
                "The model does not match the run: a job of `{}` took {}, {} more than its bound.",
                task.name,
                format_part(seen),
                format_part(seen - bound)
            ));
            for (more, cause) in causes {
                let effect = match more {
                    Nanos::MAX => "with it there is no bound".to_owned(),
                    more => format!("with it the bound is {}", format_part(bound + more)),
                };
                sentences.push(format!("{cause}; {effect}."));
            }
            sentences.push(match all[at] {
                None => "With all that was exceeded there is no bound.".into(),
                Some(all) if all >= seen => {
                    format!("With all that was exceeded the bound is {}.", format_part(all))
                }
                Some(all) => format!(
                    "With all that was exceeded the bound is {}, and {} remain that no term \
                     contains; punctual trace report \
                     says what took them.",
                    format_part(all),
                    format_part(seen - all)
                ),
            });
        }
        if sentences.is_empty() {
            let overshoot = self
                .excesses
                .iter()
                .map(|it| format!("Beyond the model, though in no bound's way: {}.", it.sentence));
            sentences.extend(overshoot);
        }
        sentences
    }
}
