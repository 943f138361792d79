//! A simulated drive: the registers of an EtherCAT SubDevice controller (ETG.1000.4), its state
//! machine, its distributed clock, and an axis that moves at each SYNC0.

use super::sii::{self, INPUTS, OUTPUTS, PDO_BYTES};

/// State of a SubDevice, as in AL status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlState {
    /// No communication but registers.
    Init = 1,
    /// Mailbox, if there is one.
    PreOp = 2,
    /// Inputs are valid.
    SafeOp = 4,
    /// Follows the outputs.
    Op = 8,
}

/// AL status codes (ETG.1000.6).
pub mod code {
    /// The state cannot be reached from the present one.
    pub const INVALID_STATE_CHANGE: u16 = 0x11;
    /// There is no such state.
    pub const UNKNOWN_STATE: u16 = 0x12;
    /// No outputs within the time of the watchdog.
    pub const WATCHDOG: u16 = 0x1b;
    /// The sync manager of the outputs does not fit the process data.
    pub const INVALID_OUTPUTS: u16 = 0x1d;
    /// The sync manager of the inputs does not fit the process data.
    pub const INVALID_INPUTS: u16 = 0x1e;
    /// SYNC0 is off, or has no cycle.
    pub const INVALID_DC: u16 = 0x30;
}

/// Time without outputs after which a drive leaves OP, in nanoseconds: the default of a controller.
pub const WATCHDOG_NS: u64 = 100_000_000;
/// Control word that lets the axis follow its velocity.
pub const ENABLE: u16 = 0x000f;
/// Status word of an axis that follows its velocity.
pub const ENABLED: u16 = 0x0027;

const DL_INFORMATION: usize = 0x0000;
const FEATURES: usize = 0x0008;
const STATION: usize = 0x0010;
const DL_STATUS: usize = 0x0110;
const AL_CONTROL: usize = 0x0120;
const AL_STATUS: usize = 0x0130;
const AL_STATUS_CODE: usize = 0x0134;
const SII_CONTROL: usize = 0x0502;
const SII_ADDRESS: usize = 0x0504;
const SII_DATA: usize = 0x0508;
const FMMU: usize = 0x0600;
const SYNC_MANAGER: usize = 0x0800;
const DC_PORT_TIMES: usize = 0x0900;
const DC_SYSTEM_TIME: usize = 0x0910;
const DC_RECEIVE_TIME: usize = 0x0918;
const DC_OFFSET: usize = 0x0920;
const DC_DELAY: usize = 0x0928;
const DC_DIFFERENCE: usize = 0x092c;
const DC_SPEED_START: usize = 0x0930;
const DC_ACTIVATION: usize = 0x0981;
const DC_START: usize = 0x0990;
const DC_SYNC0_CYCLE: usize = 0x09a0;

/// Distributed clocks of 64 bits, with SYNC.
const HAS_DC: u16 = 0x010c;
/// Cyclic unit on, SYNC0 on.
const SYNC0_ACTIVE: u8 = 0x03;
/// Bit of AL control and AL status: acknowledges, or reports an error.
const AL_ERROR: u16 = 0x10;
/// Bits of the EEPROM's control: reads of 8 bytes, a read, a failed command.
const SII_EIGHT_BYTES: u16 = 0x0040;
const SII_READ: u16 = 0x0100;
const SII_COMMAND_ERROR: u16 = 0x2000;
/// A correction of the clock is this part of a difference.
const CLOCK_GAIN: i64 = 4;
/// Number of FMMUs and of sync managers.
const CHANNELS: usize = 2;

/// Clock of a drive, whose quartz differs.
#[derive(Debug, Clone, Copy)]
pub struct Quartz {
    /// Reading at the start, in nanoseconds.
    pub start_ns: u64,
    /// Deviation of the rate, in parts per million.
    pub ppm: i64,
}

/// A drive.
#[derive(Debug)]
pub struct Drive {
    memory: Vec<u8>,
    sii: Vec<u8>,
    quartz: Quartz,
    /// Drives after this one.
    followers: u64,
    /// Correction of the system time by the control loop, in nanoseconds.
    correction: i64,
    /// OP is requested; it is reached at the first SYNC0 after outputs.
    is_op_requested: bool,
    has_outputs: bool,
    last_outputs_ns: u64,
    last_pulse: u64,
    position: i32,
    is_powered: bool,
}

impl Drive {
    /// Returns a drive in Init, which others follow on the line.
    #[must_use]
    pub fn new(serial: u32, followers: u32, quartz: Quartz) -> Self {
        let mut drive = Self {
            memory: vec![0; 0x2000],
            sii: sii::image(serial),
            quartz,
            followers: followers.into(),
            correction: 0,
            is_op_requested: false,
            has_outputs: false,
            last_outputs_ns: 0,
            last_pulse: 0,
            position: 0,
            is_powered: true,
        };
        // Type, revision, build; FMMUs and sync managers.
        drive.memory[DL_INFORMATION] = 0x11;
        drive.memory[DL_INFORMATION + 4..][..2].fill(CHANNELS as u8);
        drive.set_u16(FEATURES, HAS_DC);
        // The PDI works; link at port 0, and at port 1 to the next drive.
        drive.set_u16(DL_STATUS, if followers == 0 { 0x0011 } else { 0x0031 });
        drive.set_u16(AL_STATUS, AlState::Init as u16);
        drive
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.memory[at], self.memory[at + 1]])
    }

    fn set_u16(&mut self, at: usize, value: u16) {
        self.memory[at..][..2].copy_from_slice(&value.to_le_bytes());
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.memory[at..][..4].try_into().expect("it has four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.memory[at..][..8].try_into().expect("it has eight bytes"))
    }

    /// Station address.
    #[must_use]
    pub fn station(&self) -> u16 {
        self.u16(STATION)
    }

    /// Present state.
    #[must_use]
    pub fn state(&self) -> AlState {
        match self.u16(AL_STATUS) & 0x0f {
            1 => AlState::Init,
            2 => AlState::PreOp,
            4 => AlState::SafeOp,
            _ => AlState::Op,
        }
    }

    /// AL status code, 0 without an error.
    #[must_use]
    pub fn error(&self) -> u16 {
        self.u16(AL_STATUS_CODE)
    }

    /// Velocity that the axis follows, in increments per SYNC0.
    #[must_use]
    pub fn velocity(&self) -> i32 {
        let is_moving = self.state() == AlState::Op && self.is_enabled();
        if is_moving { self.u32(usize::from(OUTPUTS) + 2).cast_signed() } else { 0 }
    }

    /// Returns whether the last outputs let the axis move.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.u16(OUTPUTS.into()) == ENABLE
    }

    /// Position of the axis, in increments.
    #[must_use]
    pub fn position(&self) -> i32 {
        self.position
    }

    /// Delay from the reference clock, as the MainDevice has measured it, in nanoseconds.
    #[must_use]
    pub fn delay(&self) -> u32 {
        self.u32(DC_DELAY)
    }

    /// `false` if the drive passes frames on without processing them.
    #[must_use]
    pub fn is_powered(&self) -> bool {
        self.is_powered
    }

    /// Switches the supply of the controller off; the ports stay connected.
    pub fn power_off(&mut self) {
        self.is_powered = false;
    }

    /// Leaves OP with an error, as after a fault of the power stage.
    pub fn fail(&mut self, error: u16) {
        self.set_state(AlState::SafeOp, error);
    }

    fn set_state(&mut self, state: AlState, error: u16) {
        let flag = if error == 0 { 0 } else { AL_ERROR };
        self.set_u16(AL_STATUS, state as u16 | flag);
        self.set_u16(AL_STATUS_CODE, error);
        (self.is_op_requested, self.has_outputs) = (false, false);
    }

    /// Own time at `now`, in nanoseconds.
    fn local_ns(&self, now: u64) -> i64 {
        let elapsed = now.cast_signed();
        self.quartz.start_ns.cast_signed() + elapsed + elapsed * self.quartz.ppm / 1_000_000
    }

    /// System time at `now`, in nanoseconds: own time with offset and correction.
    #[must_use]
    pub fn system_time(&self, now: u64) -> u64 {
        let offset = self.u64(DC_OFFSET).cast_signed();
        self.local_ns(now).wrapping_add(offset).wrapping_add(self.correction).cast_unsigned()
    }

    /// Lets time pass: pulses of SYNC0 move the axis, and the watchdog expires.
    pub fn advance(&mut self, now: u64) {
        let (start, cycle) = (self.u64(DC_START), u64::from(self.u32(DC_SYNC0_CYCLE)));
        if self.memory[DC_ACTIVATION] == SYNC0_ACTIVE && cycle != 0 {
            let elapsed = self.system_time(now).checked_sub(start);
            let pulse = elapsed.map_or(0, |elapsed| (elapsed / cycle).saturating_add(1));
            // A correction may move the time back across a pulse.
            let pulses = pulse.saturating_sub(self.last_pulse) as i32;
            self.last_pulse = self.last_pulse.max(pulse);
            self.position = self.position.wrapping_add(pulses.wrapping_mul(self.velocity()));
            if pulses > 0 && self.is_op_requested && self.has_outputs {
                self.set_state(AlState::Op, 0);
            }
        }
        if self.state() == AlState::Op && now.saturating_sub(self.last_outputs_ns) > WATCHDOG_NS {
            self.set_state(AlState::SafeOp, code::WATCHDOG);
        }
        let status = if self.state() == AlState::Op { ENABLED } else { 0 };
        self.set_u16(INPUTS.into(), status);
        let position = self.position.to_le_bytes();
        self.memory[usize::from(INPUTS) + 2..][..4].copy_from_slice(&position);
    }

    /// Reads registers or process memory; `false` outside.
    pub fn read(&mut self, at: u16, data: &mut [u8], now: u64) -> bool {
        let at = usize::from(at);
        if (at..at + data.len()).contains(&DC_SYSTEM_TIME) {
            let time = self.system_time(now).to_le_bytes();
            self.memory[DC_SYSTEM_TIME..][..8].copy_from_slice(&time);
        }
        let Some(bytes) = self.memory.get(at..at + data.len()) else { return false };
        // A broadcast read returns the bits that are set in any SubDevice.
        data.iter_mut().zip(bytes).for_each(|(data, byte)| *data |= byte);
        true
    }

    /// Writes registers or process memory; `false` outside.
    pub fn write(&mut self, at: u16, data: &[u8], now: u64) -> bool {
        let at = usize::from(at);
        let word = |data: &[u8]| u16::from_le_bytes([data[0], data.get(1).copied().unwrap_or(0)]);
        if data.is_empty() || at + data.len() > self.memory.len() {
            return false;
        }
        match at {
            AL_CONTROL => self.request(word(data)),
            DC_PORT_TIMES => self.latch(now),
            DC_SYSTEM_TIME => self.compare(data, now),
            // Restarts the control loop.
            DC_SPEED_START => self.correction = 0,
            // Reserved, read-only, or set by the drive.
            ..STATION | DL_STATUS..AL_CONTROL | AL_STATUS..SII_CONTROL => {}
            _ => {
                self.memory[at..][..data.len()].copy_from_slice(data);
                match at {
                    SII_CONTROL => self.access_sii(word(data)),
                    DC_ACTIVATION => self.last_pulse = 0,
                    _ => {}
                }
            }
        }
        true
    }

    /// Requests a state.
    fn request(&mut self, control: u16) {
        let (state, error) = (self.state(), self.error());
        if error != 0 && control & AL_ERROR == 0 {
            return;
        }
        let wanted = match control & 0x0f {
            1 => AlState::Init,
            2 => AlState::PreOp,
            4 => AlState::SafeOp,
            8 => AlState::Op,
            _ => return self.set_state(state, code::UNKNOWN_STATE),
        };
        match (state, wanted) {
            (state, wanted) if wanted <= state => self.set_state(wanted, 0),
            (AlState::Init, AlState::PreOp) => self.set_state(AlState::PreOp, 0),
            (AlState::PreOp, AlState::SafeOp) => match self.check_configuration() {
                0 => self.set_state(AlState::SafeOp, 0),
                error => self.set_state(AlState::PreOp, error),
            },
            (AlState::SafeOp, AlState::Op) => {
                self.set_state(AlState::SafeOp, 0);
                self.is_op_requested = true;
            }
            _ => self.set_state(state, code::INVALID_STATE_CHANGE),
        }
    }

    /// Returns the AL status code of the sync managers and of SYNC0, 0 if they are in order.
    fn check_configuration(&self) -> u16 {
        let fits = |channel: usize, start: u16| {
            let at = SYNC_MANAGER + 8 * channel;
            self.u16(at) == start && self.u16(at + 2) == PDO_BYTES && self.memory[at + 6] & 1 != 0
        };
        if !fits(0, OUTPUTS) {
            code::INVALID_OUTPUTS
        } else if !fits(1, INPUTS) {
            code::INVALID_INPUTS
        } else if self.memory[DC_ACTIVATION] != SYNC0_ACTIVE || self.u32(DC_SYNC0_CYCLE) == 0 {
            code::INVALID_DC
        } else {
            0
        }
    }

    /// Reads 8 bytes of the EEPROM; its cells beyond the image are erased.
    fn access_sii(&mut self, control: u16) {
        let failed = if control & SII_READ == 0 && control & 0x0700 != 0 { SII_COMMAND_ERROR } else { 0 };
        if control & SII_READ != 0 {
            let start = 2 * usize::from(self.u16(SII_ADDRESS));
            for (index, byte) in self.memory[SII_DATA..][..8].iter_mut().enumerate() {
                *byte = self.sii.get(start + index).copied().unwrap_or(0xff);
            }
        }
        self.set_u16(SII_CONTROL, SII_EIGHT_BYTES | failed);
    }

    /// Latches the arrival of a frame: at port 0 now, at port 1 after the way to the last drive and
    /// back.
    fn latch(&mut self, now: u64) {
        let local = self.local_ns(now).cast_unsigned();
        let back = self.local_ns(now + 2 * self.followers * super::CABLE_NS) as u32;
        self.memory[DC_PORT_TIMES..][..4].copy_from_slice(&(local as u32).to_le_bytes());
        self.memory[DC_PORT_TIMES + 4..][..4].copy_from_slice(&back.to_le_bytes());
        self.memory[DC_RECEIVE_TIME..][..8].copy_from_slice(&local.to_le_bytes());
    }

    /// Compares the system time with that of the reference, which a frame carries, and corrects it.
    fn compare(&mut self, data: &[u8], now: u64) {
        let mut bytes = [0; 8];
        bytes[..data.len().min(8)].copy_from_slice(&data[..data.len().min(8)]);
        let delay = u64::from(self.u32(DC_DELAY));
        let received = u64::from_le_bytes(bytes).wrapping_add(delay);
        let difference = self.system_time(now).wrapping_sub(received).cast_signed();
        self.correction = self.correction.wrapping_sub(difference / CLOCK_GAIN);
        // A sign and a magnitude.
        let magnitude = difference.unsigned_abs().min(0x7fff_ffff) as u32;
        let sign = if difference < 0 { 1 << 31 } else { 0 };
        self.memory[DC_DIFFERENCE..][..4].copy_from_slice(&(magnitude | sign).to_le_bytes());
    }

    /// Exchanges the part of `data`, which starts at the logical address `start`, that an FMMU
    /// maps; returns whether the drive has been read, and written.
    pub fn exchange(&mut self, start: u32, data: &mut [u8], now: u64) -> (bool, bool) {
        let (mut is_read, mut is_written) = (false, false);
        for channel in 0..CHANNELS {
            let fmmu = FMMU + 16 * channel;
            let manager = SYNC_MANAGER + 8 * channel;
            let is_enabled = self.memory[fmmu + 12] & self.memory[manager + 6] & 1 != 0;
            if !is_enabled || self.state() < AlState::SafeOp {
                continue;
            }
            let offset = self.u32(fmmu).wrapping_sub(start) as usize;
            let length = usize::from(self.u16(fmmu + 4));
            let physical = usize::from(self.u16(fmmu + 8));
            let is_input = self.memory[fmmu + 11] & 1 != 0;
            let mapped = data.get_mut(offset..).and_then(|rest| rest.get_mut(..length));
            let memory = self.memory.get_mut(physical..physical + length);
            let (Some(mapped), Some(memory)) = (mapped, memory) else { continue };
            if is_input {
                mapped.copy_from_slice(memory);
                is_read = true;
            } else {
                memory.copy_from_slice(mapped);
                is_written = true;
            }
        }
        if is_written {
            self.last_outputs_ns = now;
            self.has_outputs = true;
        }
        (is_read, is_written)
    }
}
