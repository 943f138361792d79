//! Contents of the EEPROM of a simulated drive (SII, ETG.2010): identity, sync managers, process
//! data objects. Without a mailbox, a MainDevice configures the drive from these contents alone.

/// Vendor, as the simulation uses it; no vendor has it.
pub const VENDOR: u32 = 0xffff_0001;
/// Product code.
pub const PRODUCT: u32 = 0x0001_0402;
/// Name of the product.
pub const NAME: &str = "SIM-DRIVE";

/// Start of the outputs in the process memory: control word, velocity.
pub const OUTPUTS: u16 = 0x1000;
/// Start of the inputs in the process memory: status word, position.
pub const INPUTS: u16 = 0x1080;
/// Length of the outputs, and of the inputs.
pub const PDO_BYTES: u16 = 6;

/// Mode of the sync manager of the outputs: buffered, written by the MainDevice, with watchdog.
const OUTPUT_MODE: u8 = 0x64;
/// Mode of the sync manager of the inputs: buffered, read by the MainDevice.
const INPUT_MODE: u8 = 0x20;

const CATEGORY_STRINGS: u16 = 10;
const CATEGORY_GENERAL: u16 = 30;
const CATEGORY_FMMU: u16 = 40;
const CATEGORY_SYNC_MANAGER: u16 = 41;
const CATEGORY_TX_PDO: u16 = 50;
const CATEGORY_RX_PDO: u16 = 51;
const CATEGORY_END: u16 = 0xffff;

/// Word of the vendor.
const IDENTITY: usize = 0x08;
/// Word at which the categories start.
const CATEGORIES: usize = 0x40;

/// Returns the image of a drive with this serial number.
#[must_use]
pub fn image(serial: u32) -> Vec<u8> {
    let mut bytes = vec![0; 2 * CATEGORIES];
    let identity = [VENDOR, PRODUCT, 1, serial].map(u32::to_le_bytes).concat();
    bytes[2 * IDENTITY..][..identity.len()].copy_from_slice(&identity);
    let mut category = |kind: u16, contents: &[u8]| {
        let words = u16::try_from(contents.len().div_ceil(2)).expect("the contents are short");
        bytes.extend(kind.to_le_bytes());
        bytes.extend(words.to_le_bytes());
        bytes.extend(contents);
        bytes.resize(bytes.len().next_multiple_of(2), 0);
    };
    let name = [&[1, NAME.len() as u8], NAME.as_bytes()].concat();
    category(CATEGORY_STRINGS, &name);
    let mut general = [0; 32];
    // The order code is the first string; ports 0 and 1 are of the kind MII.
    (general[2], general[3], general[14]) = (1, 1, 0x11);
    category(CATEGORY_GENERAL, &general);
    category(CATEGORY_FMMU, &[1, 2]);
    let manager = |start: u16, mode: u8, kind: u8| {
        let [[start, start_high], [length, length_high]] = [start, PDO_BYTES].map(u16::to_le_bytes);
        [start, start_high, length, length_high, mode, 0, 1, kind]
    };
    let managers = [manager(OUTPUTS, OUTPUT_MODE, 3), manager(INPUTS, INPUT_MODE, 4)];
    category(CATEGORY_SYNC_MANAGER, &managers.concat());
    category(CATEGORY_TX_PDO, &pdo(0x1a00, 1, [(0x6041, 16), (0x6064, 32)]));
    category(CATEGORY_RX_PDO, &pdo(0x1600, 0, [(0x6040, 16), (0x60ff, 32)]));
    bytes.extend(CATEGORY_END.to_le_bytes());
    bytes
}

/// Returns a process data object at a sync manager, with entries of an index and a length in bits.
fn pdo(index: u16, manager: u8, entries: [(u16, u8); 2]) -> Vec<u8> {
    let [low, high] = index.to_le_bytes();
    let mut bytes = vec![low, high, entries.len() as u8, manager, 0, 0, 0, 0];
    for (index, bits) in entries {
        let [low, high] = index.to_le_bytes();
        bytes.extend([low, high, 0, 0, 0, bits, 0, 0]);
    }
    bytes
}
