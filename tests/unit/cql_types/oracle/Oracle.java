// SPDX-License-Identifier: Apache-2.0
// Asks Apache Cassandra's own classes what Tetrad's types must do, and writes the answers down, one file per subject:
// tab-separated lines, control characters and backslashes as \xHH, bytes in hex. An answer that begins with '!' is the
// message of a refusal; "!!" a refusal whose text is an accident (a null pointer, an assertion).
//
//   Oracle FOLDER SEED PAIRS VALUES
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.AssignmentTestable;
import org.apache.cassandra.cql3.ColumnIdentifier;
import org.apache.cassandra.cql3.ColumnSpecification;
import org.apache.cassandra.cql3.Constants;
import org.apache.cassandra.cql3.FieldIdentifier;
import org.apache.cassandra.cql3.QueryOptions;
import org.apache.cassandra.cql3.Term;
import org.apache.cassandra.db.marshal.*;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.schema.CQLTypeParser;
import org.apache.cassandra.schema.Types;
import org.apache.cassandra.serializers.MarshalException;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.JsonUtils;

public class Oracle {
  static Random random;
  static Path folder;
  static Types userTypes;
  /** Doubles and floats whose text every Java version agrees on. */
  static boolean niceFloats;

  static final String[] TYPES = {
      "ascii", "bigint", "blob", "boolean", "date", "decimal", "double", "duration", "float", "inet", "int", "smallint",
      "text", "time", "timestamp", "timeuuid", "tinyint", "uuid", "varint", "frozen<list<int>>", "frozen<list<text>>",
      "frozen<set<varint>>", "frozen<set<timeuuid>>", "frozen<map<text, int>>",
      "frozen<map<decimal, frozen<list<double>>>>", "frozen<tuple<int, text>>",
      "frozen<tuple<text, frozen<list<int>>, uuid>>", "frozen<tuple<frozen<tuple<int, text>>, boolean>>",
      "frozen<addr>", "frozen<\"Outer\">", "vector<float, 3>", "vector<text, 2>", "vector<decimal, 2>",
      "vector<smallint, 3>", "frozen<list<frozen<tuple<int, text>>>>", "frozen<map<frozen<addr>, blob>>",
      "frozen<list<vector<int, 2>>>"};

  interface Answer { String get() throws Exception; }

  static String ask(Answer answer) {
    try {
      return answer.get();
    } catch (MarshalException | InvalidRequestException e) {
      String message = e.getMessage();
      return message.startsWith("Error decoding JSON string") ? "!!" : "!" + message;
    } catch (Throwable e) {
      return "!!";
    }
  }

  static String escape(String text) {
    StringBuilder out = new StringBuilder();
    for (char c : text.toCharArray()) {
      if (c < 0x20 || c == 0x7f || c == '\\') out.append(String.format("\\x%02x", (int) c));
      else out.append(c);
    }
    return out.toString();
  }

  static String hex(ByteBuffer bytes) { return bytes == null ? "null" : "=" + ByteBufferUtil.bytesToHex(bytes); }

  static PrintStream open(String name) throws Exception {
    return new PrintStream(Files.newOutputStream(folder.resolve(name)), false, StandardCharsets.UTF_8);
  }

  static AbstractType<?> parse(String text) { return CQLTypeParser.parse("ks", text, userTypes); }

  // Random values.

  static int pick(int n) { return random.nextInt(n); }

  static long number(int bits) {
    switch (pick(5)) {
      case 0: return pick(5) - 2;
      case 1: return (random.nextBoolean() ? 1L : -1L) << pick(bits);
      case 2: return (1L << (bits - 1)) - 1 - pick(2);
      case 3: return pick(200) - 100;
      default: return random.nextLong() >> pick(64);
    }
  }

  static BigInteger big() {
    if (pick(3) > 0) return BigInteger.valueOf(number(64));
    byte[] bytes = new byte[1 + pick(pick(8) == 0 ? 200 : 20)];
    random.nextBytes(bytes);
    return new BigInteger(bytes);
  }

  static byte[] varint() {
    byte[] bytes = big().toByteArray();
    if (pick(6) > 0) return bytes;
    byte[] padded = new byte[bytes.length + 1 + pick(3)];
    int pad = padded.length - bytes.length;
    for (int i = 0; i < padded.length; ++i) padded[i] = i < pad ? (byte) (bytes[0] < 0 ? -1 : 0) : bytes[i - pad];
    return padded;
  }

  static ByteBuffer decimal() {
    BigInteger unscaled = big();
    int scale;
    switch (pick(8)) {
      case 0: scale = Integer.MAX_VALUE - pick(3); break;
      case 1: scale = Integer.MIN_VALUE + pick(3); break;
      case 2: scale = pick(400) - 200; break;
      default: scale = pick(12) - 4;
    }
    if (pick(3) == 0) {  // trailing zeros: equal values of other scales
      int zeros = pick(4);
      unscaled = BigInteger.valueOf(pick(30) - 15).multiply(BigInteger.TEN.pow(zeros));
      if (scale < 1000 && scale > -1000) scale = zeros + pick(3) - 1;
    }
    byte[] digits = unscaled.toByteArray();
    return ByteBuffer.allocate(4 + digits.length).putInt(scale).put(digits).flip();
  }

  static ByteBuffer bytes(int max, boolean ascii, boolean utf8) {
    if (utf8) {
      StringBuilder text = new StringBuilder();
      int n = pick(max);
      for (int i = 0; i < n; ++i) {
        int c;
        switch (pick(6)) {
          case 0: c = ascii ? pick(128) : 0x80 + pick(0x780); break;
          case 1: c = ascii ? pick(4) : 0x800 + pick(0xC000); break;
          case 2: c = ascii ? '\'' : 0x10000 + pick(0x10000); break;
          case 3: c = pick(3); break;
          default: c = "ab\"'\\:@ \n".charAt(pick(9));
        }
        text.appendCodePoint(c);
      }
      return ByteBuffer.wrap(text.toString().getBytes(StandardCharsets.UTF_8));
    }
    byte[] out = new byte[pick(max)];
    random.nextBytes(out);
    for (int i = 0; i < out.length; ++i) if (pick(3) == 0) out[i] = (byte) (new int[] {0, 1, 255, 127, 128})[pick(5)];
    return ByteBuffer.wrap(out);
  }

  static ByteBuffer uuid(boolean timed) {
    byte[] out = new byte[16];
    if (pick(4) > 0) random.nextBytes(out);
    else for (int i = 0; i < 16; ++i) out[i] = (byte) (new int[] {0, 1, 127, 128, 255})[pick(5)];
    if (timed || pick(3) > 0) out[6] = (byte) ((out[6] & 15) | (timed || pick(2) == 0 ? 0x10 : 0x40));
    return ByteBuffer.wrap(out);
  }

  static ByteBuffer duration() {
    int sign = random.nextBoolean() ? 1 : -1;
    org.apache.cassandra.cql3.Duration d = org.apache.cassandra.cql3.Duration.newInstance(
        sign * (pick(3) == 0 ? 0 : pick(1 << (1 + pick(30)))), sign * (pick(3) == 0 ? 0 : pick(1 << (1 + pick(30)))),
        sign * (pick(3) == 0 ? 0 : random.nextLong() >>> (1 + pick(63))));
    return DurationType.instance.decompose(d);
  }

  static ByteBuffer value(AbstractType<?> type) {
    if (type.allowsEmpty() && !type.isCollection() && !(type instanceof TupleType) && pick(25) == 0)
      return ByteBufferUtil.EMPTY_BYTE_BUFFER;
    if (type instanceof AsciiType) return bytes(8, true, true);
    if (type instanceof UTF8Type) return bytes(8, false, true);
    if (type instanceof BytesType) return bytes(8, false, false);
    if (type instanceof ByteType) return ByteBuffer.allocate(1).put((byte) number(8)).flip();
    if (type instanceof ShortType) return ByteBuffer.allocate(2).putShort((short) number(16)).flip();
    if (type instanceof Int32Type) return ByteBuffer.allocate(4).putInt((int) number(32)).flip();
    if (type instanceof SimpleDateType)
      return ByteBuffer.allocate(4).putInt(pick(2) == 0 ? random.nextInt() : Integer.MIN_VALUE + pick(40000)).flip();
    if (type instanceof LongType) return ByteBuffer.allocate(8).putLong(number(64)).flip();
    if (type instanceof TimestampType)
      return ByteBuffer.allocate(8).putLong(pick(2) == 0 ? number(64) : 1300000000000L + number(42)).flip();
    if (type instanceof TimeType)
      return ByteBuffer.allocate(8).putLong((random.nextLong() >>> 1) % 86400000000000L).flip();
    if (type instanceof BooleanType) return ByteBuffer.allocate(1).put((byte) (pick(5) == 0 ? pick(256) : pick(2))).flip();
    if (type instanceof FloatType) {
      float f = niceFloats ? pick(4000) / 8f - 250 : pick(6) == 0
          ? new float[] {0f, -0f, Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.MIN_VALUE, 1e10f, 1e7f,
                         0.001f, 9999999f}[pick(10)]
          : pick(3) == 0 ? pick(100) / 10f : Float.intBitsToFloat(random.nextInt());
      return ByteBuffer.allocate(4).putInt(Float.isNaN(f) && pick(2) == 0 ? 0xffc00001 + pick(9) : Float.floatToRawIntBits(f)).flip();
    }
    if (type instanceof DoubleType) {
      double d = niceFloats ? pick(4000) / 8.0 - 250 : pick(6) == 0
          ? new double[] {0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.MIN_VALUE, 1e10, 1e7,
                          0.001, 9999999}[pick(10)]
          : pick(3) == 0 ? pick(100) / 10.0 : Double.longBitsToDouble(random.nextLong());
      return ByteBuffer.allocate(8).putLong(Double.isNaN(d) && pick(2) == 0 ? 0xfff8000000000001L + pick(9) : Double.doubleToRawLongBits(d)).flip();
    }
    if (type instanceof IntegerType) return ByteBuffer.wrap(varint());
    if (type instanceof DecimalType) return decimal();
    if (type instanceof DurationType) return duration();
    if (type instanceof UUIDType) return uuid(false);
    if (type instanceof TimeUUIDType) return uuid(true);
    if (type instanceof InetAddressType) {
      byte[] out = new byte[pick(2) == 0 ? 4 : 16];
      if (pick(2) == 0) random.nextBytes(out);
      else for (int i = 0; i < out.length; ++i) out[i] = (byte) pick(2);
      if (out.length == 16 && pick(6) == 0)
        for (int i = 0; i < 12; ++i) out[i] = (byte) (i < 10 ? 0 : -1);
      return ByteBuffer.wrap(out);
    }
    List<ByteBuffer> parts = new ArrayList<>();
    if (type instanceof ListType || type instanceof SetType) {
      AbstractType<?> element = type instanceof ListType ? ((ListType<?>) type).getElementsType() : ((SetType<?>) type).getElementsType();
      int n = pick(4);
      for (int i = 0; i < n; ++i) parts.add(value(element));
      return collection(n, parts);
    }
    if (type instanceof MapType) {
      int n = pick(4);
      for (int i = 0; i < n; ++i) {
        parts.add(value(((MapType<?, ?>) type).getKeysType()));
        parts.add(value(((MapType<?, ?>) type).getValuesType()));
      }
      return collection(n, parts);
    }
    if (type instanceof TupleType) {
      int size = ((TupleType) type).size();
      int n = pick(5) == 0 ? pick(size + 1) : size;
      for (int i = 0; i < n; ++i) parts.add(pick(5) == 0 ? null : value(((TupleType) type).type(i)));
      return join(ByteBuffer.allocate(0), parts);
    }
    if (type instanceof VectorType) {
      VectorType<?> vector = (VectorType<?>) type;
      java.io.ByteArrayOutputStream out = new java.io.ByteArrayOutputStream();
      for (int i = 0; i < vector.dimension; ++i) {
        ByteBuffer part = value(vector.elementType);
        while (part.remaining() == 0 && vector.elementType.isValueLengthFixed()) part = value(vector.elementType);
        byte[] raw = ByteBufferUtil.getArray(part);
        if (!vector.elementType.isValueLengthFixed()) {
          ByteBuffer length = ByteBuffer.allocate(10);
          org.apache.cassandra.utils.vint.VIntCoding.writeUnsignedVInt32(raw.length, length);
          out.write(length.array(), 0, length.position());
        }
        out.write(raw, 0, raw.length);
      }
      return ByteBuffer.wrap(out.toByteArray());
    }
    throw new IllegalStateException(type.toString());
  }

  static ByteBuffer collection(int n, List<ByteBuffer> parts) {
    return join(ByteBuffer.allocate(4).putInt(n).flip(), parts);
  }

  static ByteBuffer join(ByteBuffer head, List<ByteBuffer> parts) {
    int size = head.remaining();
    for (ByteBuffer part : parts) size += 4 + (part == null ? 0 : part.remaining());
    ByteBuffer out = ByteBuffer.allocate(size).put(head);
    for (ByteBuffer part : parts) {
      out.putInt(part == null ? -1 : part.remaining());
      if (part != null) out.put(part.duplicate());
    }
    return out.flip();
  }

  /** Another value, often one that differs from `a` in a single byte. */
  static ByteBuffer near(AbstractType<?> type, ByteBuffer a) {
    if (pick(2) == 0 || !a.hasRemaining()) return value(type);
    for (int attempt = 0; attempt < 5; ++attempt) {
      byte[] copy = ByteBufferUtil.getArray(a).clone();
      int at = pick(copy.length);
      copy[at] = (byte) (pick(3) == 0 ? random.nextInt() : copy[at] + pick(3) - 1);
      ByteBuffer b = ByteBuffer.wrap(copy);
      try {
        type.validate(b.duplicate());
        type.compose(b.duplicate());
        return b;
      } catch (Throwable e) {
        continue;
      }
    }
    return value(type);
  }

  static String[] lines(String name) throws Exception {
    return Files.readAllLines(Path.of(System.getProperty("oracle.inputs")).resolve(name)).toArray(new String[0]);
  }

  static String mutate(String text, String alphabet) {
    StringBuilder out = new StringBuilder(text);
    for (int n = pick(3); n > 0; --n) {
      int at = pick(out.length() + 1);
      char c = alphabet.charAt(pick(alphabet.length()));
      switch (pick(3)) {
        case 0: out.insert(at, c); break;
        case 1: if (at < out.length()) out.deleteCharAt(at); break;
        default: if (at < out.length()) out.setCharAt(at, c);
      }
    }
    return out.toString();
  }

  static String randomText(String type) {
    switch (type) {
      case "timestamp": {
        String zone = new String[] {"", "", "Z", "+0100", "-08:00", "+05", " UTC", " GMT", " +01:30", " -0230", " Z"}[pick(11)];
        String fraction = pick(2) == 0 ? "" : "." + "123456789".substring(0, pick(10));
        String time = pick(4) == 0 ? "" : (pick(2) == 0 ? "T" : " ") + String.format("%02d:%02d", pick(25), pick(61))
            + (pick(4) == 0 ? "" : String.format(":%02d", pick(61)) + fraction);
        String date = String.format("%04d-%02d-%02d", pick(3) == 0 ? pick(10000) : 1900 + pick(200), pick(14), pick(33));
        return mutate(date + time + zone, "0123456789-:. TZ+");
      }
      case "date":
        return mutate(String.format("%s%04d-%02d-%02d", pick(4) == 0 ? "-" : "", pick(12000), pick(14), pick(33)), "0123456789-+");
      case "time":
        return mutate(String.format("%02d:%02d:%02d", pick(25), pick(61), pick(61)) + (pick(2) == 0 ? "" : "." + pick(1000000)), "0123456789:. +-");
      case "duration": {
        StringBuilder out = new StringBuilder(pick(4) == 0 ? "-" : "");
        if (pick(3) == 0) {
          out.append("P");
          for (String unit : new String[] {"Y", "M", "D", "T", "H", "M", "S"})
            if (unit.equals("T")) out.append("T"); else if (pick(2) == 0) out.append(pick(1 << (1 + pick(12)))).append(unit);
          return mutate(out.toString(), "0123456789YMDTHSWP-");
        }
        for (String unit : new String[] {"y", "mo", "w", "d", "h", "m", "s", "ms", "us", "ns"})
          if (pick(3) == 0) out.append(random.nextInt() >>> (1 + pick(30))).append(pick(5) == 0 ? unit.toUpperCase() : unit);
        return mutate(out.toString(), "0123456789ymowdhsunMS-");
      }
      case "inet": {
        StringBuilder out = new StringBuilder();
        if (pick(2) == 0) {
          for (int i = 0; i < 4; ++i) out.append(i > 0 ? "." : "").append(pick(300));
          return mutate(out.toString(), "0123456789.");
        }
        int n = 3 + pick(6);
        for (int i = 0; i < n; ++i) out.append(i > 0 ? ":" : "").append(pick(4) == 0 ? "" : Integer.toHexString(pick(70000)));
        return ":" + mutate(out.toString(), "0123456789abcdef:.");
      }
      case "decimal":
        return mutate(number(64) + (pick(2) == 0 ? "" : "." + pick(100000)) + (pick(2) == 0 ? "" : "E" + (pick(800) - 400)), "0123456789.eE+-");
      case "double":
      case "float":
        return mutate(number(64) + "." + pick(100000) + (pick(2) == 0 ? "" : "e" + (pick(80) - 40)), "0123456789.eE+-fdx");
      default:
        return mutate(String.valueOf(number(64)), "0123456789+-. ");
    }
  }

  public static void main(String[] args) throws Exception {
    DatabaseDescriptor.clientInitialization();
    folder = Path.of(args[0]);
    Files.createDirectories(folder);
    long seed = Long.parseLong(args[1]);
    int pairs = Integer.parseInt(args[2]), values = Integer.parseInt(args[3]);
    UserType addr = new UserType("ks", ByteBufferUtil.bytes("addr"),
        List.of(FieldIdentifier.forQuoted("a"), FieldIdentifier.forQuoted("B c")), List.of(Int32Type.instance, UTF8Type.instance), true);
    UserType outer = new UserType("ks", ByteBufferUtil.bytes("Outer"),
        List.of(FieldIdentifier.forQuoted("x"), FieldIdentifier.forQuoted("y"), FieldIdentifier.forQuoted("z")),
        List.of(addr.freeze(), ListType.getInstance(UUIDType.instance, false), TimestampType.instance), true);
    userTypes = Types.of(addr, outer);

    try (PrintStream out = open("compare.txt")) {
      for (String text : TYPES) {
        AbstractType<?> type = parse(text);
        random = new Random(seed + text.hashCode());
        for (int i = 0; i < pairs; ++i) {
          ByteBuffer a = value(type), b = near(type, a);
          String sign = ask(() -> String.valueOf(Integer.signum(type.compare(a.duplicate(), b.duplicate()))));
          out.println(text + "\t" + hex(a) + "\t" + hex(b) + "\t" + sign);
        }
      }
    }
    try (PrintStream out = open("tokens.txt")) {
      random = new Random(seed + 1);
      for (int i = 0; i < Math.max(values * 6, 300); ++i) {
        byte[] key = new byte[i < 200 ? i : pick(pick(10) == 0 ? 300 : 40)];
        random.nextBytes(key);
        if (pick(3) == 0) for (int k = 0; k < key.length; ++k) key[k] |= (byte) 0x80;
        out.println(hex(ByteBuffer.wrap(key)) + "\t" + Murmur3Partitioner.instance.getToken(ByteBuffer.wrap(key)).getTokenValue());
      }
    }
    try (PrintStream out = open("text.txt")) {
      for (String text : TYPES) {
        AbstractType<?> type = parse(text);
        random = new Random(seed + 2 + text.hashCode());
        niceFloats = !text.equals("float") && !text.equals("double");
        for (int i = 0; i < values; ++i) {
          ByteBuffer v = value(type);
          out.println(text + "\t" + hex(v) + "\t" + escape(ask(() -> type.toJSONString(v.duplicate(), ProtocolVersion.V5))) + "\t"
              + escape(ask(() -> type.toCQLString(v.duplicate()))) + "\t" + escape(ask(() -> type.getString(v.duplicate()))));
        }
        niceFloats = false;
      }
    }
    try (PrintStream out = open("parse.txt")) {
      for (String line : lines("parse.txt")) {
        String[] parts = line.split("\t", 2);
        AbstractType<?> type = parse(parts[0]);
        String text = parts.length > 1 ? parts[1] : "";
        out.println(parts[0] + "\t" + escape(text) + "\t" + escape(ask(() -> hex(type.fromString(text)))));
      }
      random = new Random(seed + 3);
      for (String name : new String[] {"timestamp", "date", "time", "duration", "inet", "decimal", "double", "float", "int", "bigint", "varint", "tinyint"})
        // Java asks the name service about odd inet texts, which is slow.
        for (int i = 0; i < (name.equals("inet") ? Math.min(values * 3, 200) : values * 3); ++i) {
          String text = randomText(name);
          out.println(name + "\t" + escape(text) + "\t" + escape(ask(() -> hex(parse(name).fromString(text)))));
        }
    }
    try (PrintStream out = open("json.txt")) {
      for (String text : TYPES)
        for (String json : lines("json.txt")) {
          AbstractType<?> type = parse(text);
          out.println(text + "\t" + escape(json) + "\t" + escape(ask(() -> {
            Object parsed = JsonUtils.decodeJson(json);
            if (parsed == null) return "null";
            Term term = type.fromJSONObject(parsed);
            return hex(term instanceof Term.Terminal ? ((Term.Terminal) term).get(ProtocolVersion.V5) : term.bindAndGet(QueryOptions.DEFAULT));
          })));
        }
    }
    try (PrintStream out = open("validate.txt")) {
      for (String text : TYPES) {
        AbstractType<?> type = parse(text);
        random = new Random(seed + 4 + text.hashCode());
        for (int i = 0; i < values / 2; ++i) {
          byte[] v = ByteBufferUtil.getArray(value(type)).clone();
          if (v.length > 0 && pick(3) > 0) v[pick(v.length)] = (byte) random.nextInt();
          if (pick(3) == 0) v = java.util.Arrays.copyOf(v, Math.max(0, v.length + pick(5) - 2));
          ByteBuffer bytes = ByteBuffer.wrap(v);
          out.println(text + "\t" + hex(bytes) + "\t" + escape(ask(() -> { type.validate(bytes.duplicate()); return "ok"; })));
        }
      }
    }
    try (PrintStream out = open("arithmetic.txt")) {
      random = new Random(seed + 5);
      for (int i = 0; i < values * 4; ++i) {
        boolean decimal = pick(3) > 0;
        BigDecimal a = new BigDecimal(big(), pick(10) == 0 ? pick(2000) - 1000 : pick(20) - 8);
        BigDecimal b = new BigDecimal(big(), pick(10) == 0 ? pick(2000) - 1000 : pick(20) - 8);
        Number l = decimal ? a : a.unscaledValue(), r = decimal ? b : b.unscaledValue();
        NumberType<?> type = decimal ? DecimalType.instance : IntegerType.instance;
        int op = pick(5);
        out.println((decimal ? "decimal" : "varint") + "\t" + "+-*/%".charAt(op) + "\t"
            + hex(decimal ? DecimalType.instance.decompose(a) : IntegerType.instance.decompose(a.unscaledValue())) + "\t"
            + hex(decimal ? DecimalType.instance.decompose(b) : IntegerType.instance.decompose(b.unscaledValue())) + "\t"
            + ask(() -> hex(op == 0 ? type.add(l, r) : op == 1 ? type.substract(l, r) : op == 2 ? type.multiply(l, r)
                : op == 3 ? type.divide(l, r) : type.mod(l, r))));
      }
    }
    try (PrintStream out = open("types.txt")) {
      List<AbstractType<?>> all = new ArrayList<>();
      for (String line : lines("types.txt")) {
        String answer = ask(() -> {
          AbstractType<?> type = parse(line);
          all.add(type);
          return type.asCQL3Type() + "\t" + type + "\t" + type.valueLengthIfFixed() + "\t" + (type.isMultiCell() ? 1 : 0);
        });
        out.println("type\t" + line + "\t" + answer);
      }
      Constants.Literal[] literals = {Constants.Literal.string("x"), Constants.Literal.integer("1"), Constants.Literal.integer("12345678901"),
          Constants.Literal.integer("123456789012345678901234567890"), Constants.Literal.floatingPoint("1.5"),
          Constants.Literal.uuid("00000000-0000-1000-8000-000000000000"), Constants.Literal.bool("true"), Constants.Literal.hex("0x00"),
          Constants.Literal.duration("1y")};
      for (AbstractType<?> to : all) {
        StringBuilder row = new StringBuilder(), literal = new StringBuilder();
        for (AbstractType<?> from : all)
          row.append((to.isValueCompatibleWith(from) ? 1 : 0) + (to.isCompatibleWith(from) ? 2 : 0) + 4 * from.testAssignment(to).ordinal()).append(' ');
        for (Constants.Literal l : literals)
          literal.append(l.testAssignment("ks", new ColumnSpecification("ks", "t", new ColumnIdentifier("c", true), to)).ordinal());
        out.println("matrix\t" + row.toString().trim() + "\t" + literal);
      }
      for (String word : lines("words.txt")) out.println("quote\t" + word + "\t" + ColumnIdentifier.maybeQuote(word));
    }
    System.exit(0);
  }
}
