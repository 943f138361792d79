//! The names of interrupts: those of devices from handler events, those of vectors from event
//! names.

use std::collections::BTreeMap;

use crate::format::Order;
use crate::format::fields::{EventFormat, Field, Shape};

/// Interrupts with higher numbers stay nameless. No known system uses such numbers.
const IRQS: u32 = 4096;

/// The names of interrupts, as far as events contain them.
#[derive(Debug)]
pub struct Interrupts {
    irqs: BTreeMap<u32, Box<str>>,
    vectors: BTreeMap<u16, Box<str>>,
    changes: u64,
    /// Those already examined, one bit each.
    seen: Vec<u64>,
    /// The ID of the event that named each vector.
    named_by: [u16; 256],
    /// Vector events by ID, without `_entry`.
    events: BTreeMap<u16, Box<str>>,
    /// The location of the handler's name in its event.
    field: Option<Field>,
}

impl Default for Interrupts {
    fn default() -> Self {
        Self {
            irqs: BTreeMap::new(),
            vectors: BTreeMap::new(),
            changes: 0,
            seen: vec![0; IRQS.div_ceil(64) as usize],
            named_by: [0; 256],
            events: BTreeMap::new(),
            field: None,
        }
    }
}

impl Interrupts {
    /// Returns every device interrupt with the name of its first handler.
    pub fn irqs(&self) -> impl Iterator<Item = (u32, &str)> {
        self.irqs.iter().map(|(&irq, name)| (irq, &**name))
    }

    /// Returns every vector with the kernel's name for it: `local_timer`.
    pub fn vectors(&self) -> impl Iterator<Item = (u16, &str)> {
        self.vectors.iter().map(|(&vector, name)| (vector, &**name))
    }

    /// Returns how often a name was learned.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds the names in a format.
    pub(super) fn add(&mut self, format: &EventFormat) {
        if format.system == "irq_vectors" {
            if let Some(name) = format.name.strip_suffix("_entry") {
                self.events.insert(format.id, name.into());
            }
        } else if format.name == "irq_handler_entry" {
            self.field = format.field("name").filter(|field| field.shape == Shape::Located).cloned();
        }
    }

    /// Handles the entry of a handler.
    #[inline]
    pub(super) fn note_irq(&mut self, irq: u32, order: Order, record: &[u8], length: usize) {
        let (word, bit) = ((irq / 64) as usize, 1 << (irq % 64));
        if self.seen.get(word).is_some_and(|seen| seen & bit == 0) {
            self.seen[word] |= bit;
            self.name_irq(irq, order, record.get(..length).unwrap_or(record));
        }
    }

    #[cold]
    fn name_irq(&mut self, irq: u32, order: Order, record: &[u8]) {
        let located = self.field.as_ref().and_then(|field| order.u32(record, usize::from(field.offset)));
        let name = located.and_then(|at| record.get((at & 0xffff) as usize..)?.get(..(at >> 16) as usize));
        let name = name.map(|name| name.split(|&byte| byte == 0).next().unwrap_or_default());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.irqs.insert(irq, String::from_utf8_lossy(name).into());
            self.changes += 1;
        }
    }

    /// Handles that event, which shows that a vector's handler is entered.
    #[inline]
    pub(super) fn note_vector(&mut self, vector: u16, event: u16) {
        if self.named_by.get(usize::from(vector)).is_some_and(|&named_by| named_by != event) {
            self.name_vector(vector, event);
        }
    }

    #[cold]
    fn name_vector(&mut self, vector: u16, event: u16) {
        self.named_by[usize::from(vector)] = event;
        if let Some(name) = self.events.get(&event) {
            self.vectors.insert(vector, name.clone());
            self.changes += 1;
        }
    }
}
