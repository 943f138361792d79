//! Loading the programs, and reading their rings.

use std::error::Error;
use std::io;

use aya::maps::{ArrayOfMaps, HashMap, Map, MapData, PerCpuArray, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use aya_obj::btf::BtfKind;
use aya_obj::generated::bpf_map_type::BPF_MAP_TYPE_RINGBUF;

use super::record::Decoder;
use super::{Record, ring_bytes};
use crate::event::Tid;
use crate::record::Config;
use crate::record::error::RecordError;
use crate::record::filter::kernel_name;

static OBJECT: &[u8] = aya::include_bytes_aligned!("schedule.bpf.o");

/// The programs that write records, and their tracepoints.
const RECORDERS: [(&str, &str); 2] =
    [("schedule_enter", "sched_entry_tp"), ("schedule_exit", "sched_exit_tp")];
/// The programs that follow the traced threads as they create threads and end.
const FOLLOWERS: [(&str, &str); 2] =
    [("follow_fork", "sched_process_fork"), ("follow_free", "sched_process_free")];

/// Room for threads that the traced ones create. The overhead of threads for which there is no room
/// is bounded instead of exact.
const MORE_THREADS: usize = 32 << 10;

/// A ring, and the state of reading it.
struct Ring {
    records: RingBuf<MapData>,
    decoder: Decoder,
}

/// The loaded programs. Dropping this ends them and all that belongs to them.
pub(in crate::record) struct Programs {
    // The first field, so that the programs end before their rings are freed.
    bpf: Ebpf,
    made: PerCpuArray<MapData, u64>,
    cpus: Vec<u32>,
    rings: Vec<Ring>,
}

impl Programs {
    /// Loads the programs, and attaches those that follow the traced threads; or returns the reason
    /// why the kernel cannot run them.
    pub(in crate::record) fn load(
        config: &Config,
        threads: &[Tid],
        cpus: &[u32],
    ) -> Result<Result<Self, String>, RecordError> {
        let btf = match Btf::from_sys_fs() {
            Ok(btf) => btf,
            Err(error) => match system_error(&error).map(io::Error::kind) {
                Some(io::ErrorKind::NotFound) => {
                    let why = "the kernel does not describe itself in /sys/kernel/btf/vmlinux; use one with \
                               CONFIG_DEBUG_INFO_BTF";
                    return Ok(Err(why.to_owned()));
                }
                _ => return Err(failed("reading /sys/kernel/btf/vmlinux")(error)),
            },
        };
        let absent =
            |name: &str| btf.id_by_type_name_kind(&format!("btf_trace_{name}"), BtfKind::Typedef).is_err();
        if let Some((_, name)) = RECORDERS.into_iter().find(|(_, name)| absent(name)) {
            return Ok(Err(format!("the kernel has no tracepoint {name}; Linux 6.15 or later has it")));
        }
        Self::load_with(&btf, config, threads, cpus).map(Ok)
    }

    fn load_with(btf: &Btf, config: &Config, threads: &[Tid], cpus: &[u32]) -> Result<Self, RecordError> {
        let filter = &config.filter;
        let (first, last) = match &filter.priorities {
            // The kernel's numbering is reversed.
            Some(range) => (99 - i32::from(*range.end()), 99 - i32::from(*range.start())),
            None => (1, 0),
        };
        let [everybody, by_name] = [filter.is_empty(), !filter.names.is_empty()].map(u32::from);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut bpf = EbpfLoader::new()
            .btf(Some(btf))
            .override_global("everybody", &everybody, true)
            .override_global("by_name", &by_name, true)
            .override_global("first_priority", &first, true)
            .override_global("last_priority", &last, true)
            .map_max_entries("rings", cpus.iter().max().map_or(1, |cpu| cpu + 1))
            .map_max_entries("threads", count(threads.len() + MORE_THREADS))
            .map_max_entries("names", count(filter.names.len().max(1)))
            .load(OBJECT)
            .map_err(failed("loading BPF programs"))?;
        let following = !filter.is_empty() && !threads.is_empty();
        let followers = FOLLOWERS.iter().filter(|_| following);
        for (program, tracepoint) in RECORDERS.iter().chain(followers) {
            let result = self::program(&mut bpf, program).load(tracepoint, btf);
            result.map_err(failed("loading BPF programs"))?;
        }
        // From here on the programs hold references to the maps; before, a closed map would be
        // lost.
        let rings = rings(&mut bpf, ring_bytes(config.buffer_kib), cpus)?;
        let made = PerCpuArray::try_from(take(&mut bpf, "made")).map_err(failed("opening a BPF map"))?;
        names(&mut bpf, &filter.names)?;
        let mut programs = Self { bpf, made, cpus: cpus.to_vec(), rings };
        if following {
            programs.follow(config, threads)?;
        }
        Ok(programs)
    }

    /// Follows these threads and all that they create.
    fn follow(&mut self, config: &Config, threads: &[Tid]) -> Result<(), RecordError> {
        let map = take(&mut self.bpf, "threads");
        let mut map: HashMap<_, u32, u32> = HashMap::try_from(map).map_err(failed("opening a BPF map"))?;
        let mut add = |threads: &[Tid]| {
            let mut inserted = threads.iter().map(|thread| map.insert(thread, thread, 0));
            inserted.try_for_each(|result| result.map_err(failed("selecting threads for BPF programs")))
        };
        add(threads)?;
        FOLLOWERS.iter().try_for_each(|(program, _)| self.attach_one(program))?;
        // Add threads created before following began. A process that has ended has no threads.
        add(&config.filter.threads().unwrap_or_default())
    }

    fn attach_one(&mut self, name: &str) -> Result<(), RecordError> {
        program(&mut self.bpf, name).attach().map_err(failed("attaching BPF programs")).map(drop)
    }

    /// Returns the CPUs that have rings, in the order of their indices.
    pub(in crate::record) fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Starts recording.
    pub(in crate::record) fn attach(&mut self) -> Result<(), RecordError> {
        RECORDERS.iter().try_for_each(|(program, _)| self.attach_one(program))
    }

    /// Ends the recording. A record that is being written may still arrive.
    pub(in crate::record) fn detach(&mut self) {
        for (name, _) in RECORDERS {
            // Unloading also detaches. It fails only for programs that are not loaded, which write
            // nothing.
            let _ = program(&mut self.bpf, name).unload();
        }
    }

    /// Passes the records in the ring of a CPU, given by its index, to `take` until it returns
    /// false.
    pub(in crate::record) fn read(&mut self, index: usize, mut take: impl FnMut(Record) -> bool) {
        let Some(Ring { records, decoder }) = self.rings.get_mut(index) else { return };
        while let Some(item) = records.next() {
            if decoder.decode(&item).is_some_and(|record| !take(record)) {
                return;
            }
        }
    }

    /// Returns how many records of a CPU, given by its index, are missing after the last one read,
    /// and its time; to be called when the ring is empty and recording has ended.
    pub(in crate::record) fn missing(&self, index: usize) -> Option<(u64, u64)> {
        let decoder = &self.rings.get(index)?.decoder;
        let made = self.made.get(&0, 0).ok()?.get(*self.cpus.get(index)? as usize).copied()?;
        let missing = decoder.missing(made);
        (missing > 0).then_some((missing, decoder.last()))
    }
}

/// Returns a program of the object.
fn program<'a>(bpf: &'a mut Ebpf, name: &str) -> &'a mut BtfTracePoint {
    let program = bpf.program_mut(name).expect("the object has this program");
    program.try_into().expect("all programs of the object are for tracepoints by BTF")
}

/// Takes ownership of a map of the object.
fn take(bpf: &mut Ebpf, name: &str) -> Map {
    bpf.take_map(name).expect("the object has this map")
}

/// Creates a ring for each of the CPUs.
fn rings(bpf: &mut Ebpf, bytes: u32, cpus: &[u32]) -> Result<Vec<Ring>, RecordError> {
    let mut array: ArrayOfMaps<_, MapData> =
        ArrayOfMaps::try_from(take(bpf, "rings")).map_err(failed("opening a BPF map"))?;
    let one = |&cpu: &u32| {
        let attempt = "making a BPF ring";
        let ring = aya_obj::Map::new_from_params(BPF_MAP_TYPE_RINGBUF as u32, 0, 0, bytes, 0);
        let ring = MapData::create(ring, "ring", None).map_err(failed(attempt))?;
        array.set(cpu, &ring, 0).map_err(failed(attempt))?;
        let records = RingBuf::try_from(Map::RingBuf(ring)).map_err(failed(attempt))?;
        Ok(Ring { records, decoder: Decoder::default() })
    };
    cpus.iter().map(one).collect()
}

/// Selects threads by their names.
fn names(bpf: &mut Ebpf, names: &[String]) -> Result<(), RecordError> {
    let mut map: HashMap<_, [u8; 16], u32> =
        HashMap::try_from(take(bpf, "names")).map_err(failed("opening a BPF map"))?;
    for name in names {
        let name = kernel_name(name).as_bytes();
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name);
        map.insert(bytes, 1, 0).map_err(failed("selecting threads for BPF programs"))?;
    }
    Ok(())
}

/// Returns the system error that caused an error.
fn system_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut chain = std::iter::successors(Some(error), |&error| error.source());
    chain.find_map(|error| error.downcast_ref())
}

/// Converts it, with all of its causes, to an error for the caller.
fn failed<E: Error + 'static>(attempt: &'static str) -> impl Fn(E) -> RecordError {
    move |error| {
        let denied =
            system_error(&error).is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        let causes = std::iter::successors(Some(&error as &dyn Error), |&error| error.source());
        let what = causes.map(|cause| cause.to_string()).collect::<Vec<_>>().join(": ");
        RecordError::Bpf { attempt, denied, what }
    }
}
