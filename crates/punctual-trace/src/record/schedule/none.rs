//! No programs: this crate was built without them.

use super::Record;
use crate::event::Tid;
use crate::record::Config;
use crate::record::error::RecordError;

/// Without values, because there are no programs.
pub(in crate::record) enum Programs {}

impl Programs {
    pub(in crate::record) fn load(
        _: &Config,
        _: &[Tid],
        _: &[u32],
    ) -> Result<Result<Self, String>, RecordError> {
        let why = match cfg!(feature = "bpf") {
            true => "BPF programs exist only for little-endian machines",
            false => "built without BPF programs; build with the cargo feature `bpf`",
        };
        Ok(Err(why.to_owned()))
    }

    pub(in crate::record) fn cpus(&self) -> &[u32] {
        match *self {}
    }

    pub(in crate::record) fn attach(&mut self) -> Result<(), RecordError> {
        match *self {}
    }

    pub(in crate::record) fn detach(&mut self) {
        match *self {}
    }

    pub(in crate::record) fn read(&mut self, _: usize, _: impl FnMut(Record) -> bool) {
        match *self {}
    }

    pub(in crate::record) fn missing(&self, _: usize) -> Option<(u64, u64)> {
        match *self {}
    }
}
