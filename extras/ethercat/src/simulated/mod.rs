//! Simulated drives at an EtherCAT network: enough of a SubDevice controller for `ethercrab` to
//! configure it, bring it to OP, align its clock and exchange process data with it.
//!
//! [`Network::process`] does with a frame what the drives of a line do. [`SimulatedLink`] calls it
//! in the process of the controller, [`serve`] at the other end of an Ethernet interface.

pub mod esc;
pub mod sii;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esc::{Drive, Quartz};

use crate::link::{Link, MAX_FRAME_BYTES, RawSocket};

/// Delay of the cable between two drives, in nanoseconds.
pub const CABLE_NS: u64 = 500;

const ETHERTYPE: [u8; 2] = [0x88, 0xa4];
const ETHERNET_HEADER_BYTES: usize = 14;
const PDU_HEADER_BYTES: usize = 10;
/// Bit of the source address that the first SubDevice sets.
const LOCALLY_ADMINISTERED: u8 = 0x02;
/// Bit of a PDU's length that announces another PDU.
const HAS_NEXT: u16 = 0x8000;

const APRD: u8 = 1;
const APWR: u8 = 2;
const FPRD: u8 = 4;
const FPWR: u8 = 5;
const BRD: u8 = 7;
const BWR: u8 = 8;
const LRW: u8 = 12;
const FRMW: u8 = 14;

/// Faults, by the number of the frame with process data, from 1.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Frames that are lost.
    pub lost: Vec<u64>,
    /// Frames that arrive with the next one.
    pub late: Vec<u64>,
    /// No frame returns from this one on.
    pub cut_at: Option<u64>,
    /// The last drive leaves OP.
    pub fails_at: Option<u64>,
    /// The last drive loses its supply.
    pub power_off_at: Option<u64>,
}

/// Drives on a line.
#[derive(Debug)]
pub struct Network {
    drives: Vec<Drive>,
    faults: Faults,
    /// Frames with process data.
    exchanges: u64,
    last_instant: u64,
    elapsed: u64,
    late: Option<Vec<u8>>,
}

/// Fate of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The frame returns.
    Returned,
    /// The frame returns after the next one.
    Late,
    /// The frame does not return.
    Lost,
}

impl Network {
    /// Returns a line of drives whose clocks differ.
    #[must_use]
    pub fn new(drives: u32, faults: Faults) -> Self {
        let drive = |index: u32| {
            let quartz =
                Quartz { start_ns: 7_000_000_000 * u64::from(index), ppm: 30 - 50 * i64::from(index) };
            Drive::new(1 + index, drives - 1 - index, quartz)
        };
        let drives = (0..drives).map(drive).collect();
        Self { drives, faults, exchanges: 0, last_instant: u64::MAX, elapsed: 0, late: None }
    }

    /// The drives, in the order of the line.
    #[must_use]
    pub fn drives(&self) -> &[Drive] {
        &self.drives
    }

    /// Sets the faults of further frames.
    pub fn set_faults(&mut self, faults: Faults) {
        (self.faults, self.exchanges) = (faults, 0);
    }

    /// Lets the time pass without frames, in nanoseconds.
    pub fn wait(&mut self, nanoseconds: u64) {
        self.elapsed += nanoseconds;
        self.advance(self.last_instant);
    }

    /// Lets the time pass until `instant`, in nanoseconds of any clock.
    fn advance(&mut self, instant: u64) {
        // The clock may start again, as virtual time does.
        self.elapsed += instant.saturating_sub(self.last_instant);
        self.last_instant = instant;
        for (drive, delay) in self.drives.iter_mut().zip((0..).step_by(CABLE_NS as usize)) {
            drive.advance(self.elapsed + delay);
        }
    }

    /// Lets a frame pass through the drives now, and sends the frames that come back: the frame,
    /// and one that is late.
    fn pass(&mut self, frame: &mut [u8], mut send: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let instant = punctual::now().duration_since_epoch().as_nanos();
        match self.process(frame, instant) {
            Fate::Returned => {
                send(frame)?;
                self.late.take().map_or(Ok(()), |late| send(&late))
            }
            Fate::Late => {
                self.late = Some(frame.to_vec());
                Ok(())
            }
            Fate::Lost => Ok(()),
        }
    }

    /// Lets a frame pass through the drives at `instant`.
    fn process(&mut self, frame: &mut [u8], instant: u64) -> Fate {
        self.advance(instant);
        let is_ethercat = frame.get(12..ETHERNET_HEADER_BYTES) == Some(&ETHERTYPE[..]);
        if !is_ethercat || self.drives.is_empty() {
            return Fate::Lost;
        }
        frame[6] |= LOCALLY_ADMINISTERED;
        let Some(mut rest) = frame.get_mut(ETHERNET_HEADER_BYTES + 2..) else { return Fate::Lost };
        let mut has_process_data = false;
        while let Some((header, after)) = rest.split_first_chunk_mut::<PDU_HEADER_BYTES>() {
            let length = u16::from_le_bytes([header[6], header[7]]);
            let bytes = usize::from(length & 0x07ff);
            let Some((data, after)) = after.split_at_mut_checked(bytes) else { break };
            let Some((counter, after)) = after.split_first_chunk_mut::<2>() else { break };
            has_process_data |= header[0] == LRW;
            self.execute(header, data, counter);
            if length & HAS_NEXT == 0 {
                break;
            }
            rest = after;
        }
        if has_process_data { self.fate_of_exchange() } else { Fate::Returned }
    }

    /// Executes a PDU in each drive.
    fn execute(&mut self, header: &mut [u8; PDU_HEADER_BYTES], data: &mut [u8], counter: &mut [u8; 2]) {
        let command = header[0];
        let register = u16::from_le_bytes([header[4], header[5]]);
        let logical = u32::from_le_bytes([header[2], header[3], header[4], header[5]]);
        let mut now = self.elapsed;
        for drive in self.drives.iter_mut().filter(|drive| drive.is_powered()) {
            let address = u16::from_le_bytes([header[2], header[3]]);
            let is_addressed = match command {
                APRD | APWR => address == 0,
                _ => address == drive.station(),
            };
            let increment: u16 = match command {
                BRD => drive.read(register, data, now).into(),
                APRD | FPRD | FRMW if is_addressed => {
                    data.fill(0);
                    drive.read(register, data, now).into()
                }
                BWR | FRMW => drive.write(register, data, now).into(),
                APWR | FPWR if is_addressed => drive.write(register, data, now).into(),
                LRW => {
                    let (is_read, is_written) = drive.exchange(logical, data, now);
                    u16::from(is_read) + 2 * u16::from(is_written)
                }
                _ => 0,
            };
            *counter = u16::from_le_bytes(*counter).wrapping_add(increment).to_le_bytes();
            if matches!(command, APRD | APWR | BRD | BWR) {
                header[2..4].copy_from_slice(&address.wrapping_add(1).to_le_bytes());
            }
            now += CABLE_NS;
        }
    }

    fn fate_of_exchange(&mut self) -> Fate {
        self.exchanges += 1;
        let number = self.exchanges;
        if let Some(last) = self.drives.last_mut() {
            if self.faults.fails_at == Some(number) {
                // A code of the manufacturer.
                last.fail(0x8001);
            }
            if self.faults.power_off_at == Some(number) {
                last.power_off();
            }
        }
        if self.faults.lost.contains(&number) || self.faults.cut_at.is_some_and(|cut| number >= cut) {
            Fate::Lost
        } else if self.faults.late.contains(&number) {
            Fate::Late
        } else {
            Fate::Returned
        }
    }
}

/// A network that tests examine while a controller uses it.
pub type SharedNetwork = Arc<Mutex<Network>>;

/// Locks a network.
pub fn lock(network: &SharedNetwork) -> MutexGuard<'_, Network> {
    network.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A link to a network in this process, whose frames return at once.
#[derive(Debug)]
pub struct SimulatedLink {
    network: SharedNetwork,
    returned: VecDeque<Vec<u8>>,
}

impl SimulatedLink {
    /// Connects a controller to a network.
    #[must_use]
    pub fn new(network: SharedNetwork) -> Self {
        Self { network, returned: VecDeque::new() }
    }
}

impl Link for SimulatedLink {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let returned = |frame: &[u8]| {
            self.returned.push_back(frame.to_vec());
            Ok(())
        };
        lock(&self.network).pass(&mut frame.to_vec(), returned)
    }

    fn receive(&mut self, buffer: &mut [u8; MAX_FRAME_BYTES]) -> io::Result<Option<usize>> {
        let Some(frame) = self.returned.pop_front() else { return Ok(None) };
        buffer[..frame.len()].copy_from_slice(&frame);
        Ok(Some(frame.len()))
    }

    fn wait(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Simulates drives at an Ethernet interface, until the interface goes down.
///
/// # Errors
/// Returns the error of the socket.
pub fn serve(socket: &mut RawSocket, network: &mut Network) -> io::Result<()> {
    let mut buffer = [0; MAX_FRAME_BYTES];
    loop {
        socket.wait()?;
        while let Some(length) = socket.receive(&mut buffer)? {
            network.pass(&mut buffer[..length], |frame| socket.send(frame))?;
        }
    }
}
