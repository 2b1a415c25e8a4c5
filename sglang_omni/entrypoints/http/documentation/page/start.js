// Draws the operations of the schema, to read and to try.

// For a sound that an operation answered with, Swagger UI would ask again, by GET, without the body.
// This plays the one that came.
function playReceivedSound() {
  const responseBody = (Original, { React }) =>
    function ResponseBody(props) {
      const { content, contentType = "" } = props;
      const isSound = content instanceof Blob && contentType.startsWith("audio/");
      const address = React.useMemo(() => isSound && URL.createObjectURL(content), [content, isSound]);
      return isSound
        ? React.createElement("audio", { controls: true, src: address })
        : React.createElement(Original, props);
    };
  return { wrapComponents: { responseBody } };
}

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#operations",
  deepLinking: true,
  // By default the schema is sent to another host to be checked.
  validatorUrl: null,
  plugins: [playReceivedSound],
});
