/**
 * Loaded into a server (`node --import`) to measure what the four lanes of MD5 are worth: refuses modules with the vector addition that
 * only they have, as a processor without vectors would. MD5 then runs in one lane; the folded CRCs, which need only XORs, stay.
 */
const I32X4_ADD = Buffer.of(0xfd, 0xae, 0x01);
const { validate } = WebAssembly;
WebAssembly.validate = (bytes) => !Buffer.from(bytes.buffer).includes(I32X4_ADD) && validate(bytes);
